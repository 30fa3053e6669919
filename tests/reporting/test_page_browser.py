"""The report in a browser: it sorts, explains, asks for nothing, and everyone can use it.

Needs Chromium with its driver, Selenium (``pip install selenium``) and axe-core (``npm install
axe-core`` in the repository, or its ``axe.min.js`` named in BAYESRANK_AXE); skipped without them.
"""

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayesrank import Responses, rank
from bayesrank.reporting.page import report

webdriver = pytest.importorskip(
    "selenium.webdriver", reason="the browser test needs Selenium: pip install selenium"
)
waiting = pytest.importorskip("selenium.webdriver.support.wait")

AXE = Path(
    os.environ.get(
        "BAYESRANK_AXE", Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
    )
)
N_SYSTEMS = 60
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HEADERS = "#leaderboard-table thead button"
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of sixty systems with long names, by two methods."""
    rng = np.random.default_rng(1)
    chance = np.linspace(0.2, 0.9, N_SYSTEMS)[:, None, None]
    outcomes = (rng.random((N_SYSTEMS, 30, 4)) < chance).astype(np.int8)
    outcomes[:, 0] = 1
    names = [f"organisation/a-model-with-a-very-long-name-and-a-date-{i:02d}" for i in range(60)]
    data = Responses(outcomes, systems=names)
    results = [rank(data, method, random_seed=1) for method in ("bayes", "borda")]
    return report(results, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Start Chromium without a window."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("the browser test needs Chromium and its driver (Debian: chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    started = webdriver.Chrome(options=options, service=service)
    yield started
    started.quit()


@pytest.fixture
def opened(browser: Any, page: Path) -> Any:
    """Open the report at the size of a desktop."""
    set_size(browser, *SIZES["desktop"])
    # On a busy machine a window starts without the focus, and a page may still load when the driver
    # goes on; a blank page between two tests keeps it from taking the last one for the next.
    browser.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    for address, has_headers in (("about:blank", False), (page.as_uri(), True)):
        browser.get(address)
        waiting.WebDriverWait(browser, 60).until(
            lambda b, expected=has_headers: (
                bool(b.find_elements("css selector", HEADERS)) == expected
            )
        )
    return browser


def set_size(browser: Any, width: int, height: int) -> None:
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def set_theme(browser: Any, theme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def column(browser: Any, position: int) -> list[str]:
    cells = browser.execute_script(
        "return [...document.querySelector('#leaderboard-table').tBodies[0].rows]"
        ".map(row => row.cells[arguments[0]].dataset.key)",
        position,
    )
    return list(cells)


def header(browser: Any, position: int) -> Any:
    return browser.find_elements("css selector", HEADERS)[position]


def show(browser: Any, element: Any) -> None:
    """Scroll to an element at once, where a person would wait for the page to stand still."""
    browser.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element
    )


def test_nothing_is_requested_and_the_console_is_empty(browser: Any, page: Path) -> None:
    browser.get("about:blank")
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(page.as_uri())
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    assert {url for url in asked if not url.startswith("data:")} == {page.as_uri()}
    assert browser.get_log("browser") == []


def test_headers_sort_the_table(opened: Any) -> None:
    score = next(i for i in range(10) if header(opened, i).text.startswith("score"))
    header(opened, score).click()
    values = [float(value) for value in column(opened, score)]
    assert values == sorted(values, reverse=True)
    assert len(values) == N_SYSTEMS
    header(opened, score).click()
    assert [float(value) for value in column(opened, score)] == sorted(values)
    heading = header(opened, score).find_element("xpath", "..")
    assert heading.get_attribute("aria-sort") == "ascending"


def test_the_first_click_sorts_the_best_first(opened: Any) -> None:
    for header, expected in (("Pr(best)", "descending"), ("lcb rank", "ascending")):
        (button,) = (
            each for each in opened.find_elements("css selector", HEADERS) if header in each.text
        )
        button.click()
        heading = button.find_element("xpath", "..")
        assert heading.get_attribute("aria-sort") == expected


def test_rows_can_be_filtered_by_name(opened: Any) -> None:
    (search,) = opened.find_elements("css selector", "#leaderboard .filter input")
    search.send_keys("DATE-07")
    shown = opened.find_elements("css selector", "#leaderboard-table tbody tr:not([hidden])")
    assert [row.find_element("css selector", "th").text[-2:] for row in shown] == ["07"]


def test_two_systems_can_be_compared(opened: Any) -> None:
    first, second = opened.find_elements("css selector", "#superiority select")
    first.send_keys("organisation/a-model-with-a-very-long-name-and-a-date-59")
    second.send_keys("organisation/a-model-with-a-very-long-name-and-a-date-00")
    said = opened.find_element("css selector", "#superiority output").text
    assert said.endswith(
        "date-59 is better than organisation/a-model-with-a-very-long-name-and-a-date-00: >0.99"
    )


def test_the_keyboard_sorts_and_explains(opened: Any) -> None:
    button = header(opened, 0)
    opened.execute_script("arguments[0].focus()", button)
    tip = opened.find_element("id", "tip")
    assert tip.is_displayed()
    assert tip.text == "Conservative place, by the lower credible bound."
    button.send_keys("\ue007\ue007")  # Enter, twice: down from the last
    assert column(opened, 0)[0] == "60"


def test_pointing_at_a_row_and_at_a_cell_reads_its_numbers(opened: Any) -> None:
    actions = webdriver.ActionChains(opened)
    tip = opened.find_element("id", "tip")
    row = opened.find_element("css selector", "#forest svg [data-tip]")
    show(opened, row)
    actions.move_to_element(row).perform()
    assert tip.text.startswith("rank 1, system organisation/")
    image = opened.find_element("css selector", "#superiority svg image")
    show(opened, image)
    box = image.rect
    corner = (box["width"] / 2 - 3, 3 - box["height"] / 2)
    actions.move_to_element_with_offset(image, *map(int, corner)).perform()
    assert "is better than" in tip.text
    assert tip.text.endswith(">0.99")


@pytest.mark.parametrize(("size", "theme"), [("desktop", "light"), ("phone", "dark")])
def test_axe_finds_no_serious_problem(opened: Any, size: str, theme: str) -> None:
    if not AXE.is_file():
        pytest.skip(f"axe-core is not at {AXE}: npm install axe-core, or set BAYESRANK_AXE")
    set_size(opened, *SIZES[size])
    set_theme(opened, theme)
    opened.execute_script(AXE.read_text(encoding="utf-8"))
    opened.set_script_timeout(120)
    found = opened.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    serious = [
        (problem["id"], problem["nodes"][0]["html"])
        for problem in found["violations"]
        if problem["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("size", SIZES)
def test_only_regions_scroll_sideways(opened: Any, size: str) -> None:
    set_size(opened, *SIZES[size])
    width, inner = opened.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert width <= inner


def test_text_in_figures_does_not_overlap(opened: Any) -> None:
    """The fonts of the page are not those that the figures were laid out with."""
    overlaps = opened.execute_script(
        """
        const found = [];
        for (const svg of document.querySelectorAll("svg")) {
          const boxes = [...svg.querySelectorAll("text")].map(t => t.getBoundingClientRect());
          const frame = svg.getBoundingClientRect();
          for (const [i, a] of boxes.entries()) {
            if (a.left < frame.left - 1 || a.right > frame.right + 1) found.push("clipped");
            for (const b of boxes.slice(i + 1)) {
              const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
              const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
              // Boxes of lines hold room for accents above the letters.
              if (wide > 1 && high > 0.4 * Math.min(a.height, b.height)) found.push("overlap");
            }
          }
        }
        return found;
        """
    )
    assert overlaps == []


def test_print_keeps_everything_on_the_page(opened: Any) -> None:
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    # Paper of A4 is 794 pixels wide, less two margins of 12 mm.
    set_size(opened, 794 - 2 * 45, 900)
    try:
        width = opened.execute_script("return document.documentElement.scrollWidth")
        assert width <= 794 - 2 * 45
        paper = opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
        assert base64.b64decode(paper["data"]).startswith(b"%PDF")
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
