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
import pandas as pd
import pytest

from bayesrank import Battles, Responses, rank
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
SIZES = {"desktop": (1440, 900), "tablet": (768, 1024), "phone": (390, 844)}
PAPER = (794 - 2 * 45, 900)  # A4 is 794 pixels wide, less two margins of 12 mm
MOST_BYTES, MOST_SECONDS = 2_000_000, 3.0


def responses_page(folder: Path, n_systems: int) -> Path:
    """Write a report of systems with long names and many scripts, by two methods."""
    rng = np.random.default_rng(1)
    chance = np.linspace(0.2, 0.9, n_systems)[:, None, None]
    outcomes = (rng.random((n_systems, 30, 4)) < chance).astype(np.int8)
    outcomes[:, 0] = 1
    names = [f"organisation/a-model-with-a-very-long-name-and-a-date-{i:02d}" for i in range(60)]
    names[1], names[2] = "\u0646\u0645\u0648\u0630\u062c-2", "\u901a\u4e49\u5343\u95ee-\U0001f916"
    data = Responses(outcomes, systems=names[:n_systems], groups=["algebra", "geometry"] * 15)
    results = [rank(data, method, random_seed=1) for method in ("bayes", "borda")]
    earlier = rank(data.select(questions=list(data.questions[:20])), "bayes", random_seed=1)
    earlier.attrs["created_at"] = "2020-01-02T03:04:05+00:00"
    costs = pd.DataFrame(
        {"cost in dollars": 10 ** rng.normal(size=n_systems), "licence": "open"}, data.systems
    )
    everything = {"earlier": earlier, "bayes": results[0], "borda": results[1]}
    return report(everything, folder / f"{n_systems}.html", columns=costs, data=data)


def battles_page(folder: Path) -> Path:
    """Write a report of battles."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, 20, 3000)
    second = (first + rng.integers(1, 20, 3000)) % 20
    names = np.array([f"organisation/a-chat-model-with-a-long-name-{i:02d}" for i in range(20)])
    winner = np.where(rng.random(3000) < 0.2, "tie", np.where(first < second, "first", "second"))
    result = rank(Battles(names[first], names[second], winner), random_seed=1)
    return report(result, folder / "battles.html", scale="elo")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write all reports that are looked at."""
    folder = tmp_path_factory.mktemp("reports")
    written = {str(n): responses_page(folder, n) for n in (3, 20, N_SYSTEMS)}
    return written | {"battles": battles_page(folder)}


@pytest.fixture(scope="module")
def page(pages: dict[str, Path]) -> Path:
    """Return the report of sixty systems."""
    return pages[str(N_SYSTEMS)]


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


def open_page(browser: Any, path: Path) -> None:
    """Open a report and wait until its leaderboard is there."""
    # On a busy machine a page may still load when the driver goes on; a blank page in between keeps
    # it from taking the last one for the next.
    for address, has_headers in (("about:blank", False), (path.as_uri(), True)):
        browser.get(address)
        waiting.WebDriverWait(browser, 60).until(
            lambda b, expected=has_headers: (
                bool(b.find_elements("css selector", HEADERS)) == expected
                and b.execute_script("return document.readyState") == "complete"
            )
        )


@pytest.fixture
def opened(browser: Any, page: Path) -> Any:
    """Open the report at the size of a desktop."""
    set_size(browser, *SIZES["desktop"])
    # On a busy machine a window starts without the focus.
    browser.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    open_page(browser, page)
    return browser


def set_size(browser: Any, width: int, height: int) -> None:
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def set_media(browser: Any, theme: str) -> None:
    """Show a page in a theme, or as on paper."""
    features = [{"name": "prefers-color-scheme", "value": "light" if theme == "print" else theme}]
    media = "print" if theme == "print" else ""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def column(browser: Any, position: int) -> list[str]:
    cells = browser.execute_script(
        "return [...document.querySelector('#leaderboard-table').tBodies[0].rows]"
        ".map(row => row.cells[arguments[0]].dataset.key)",
        position,
    )
    return list(cells)


def header(browser: Any, position: int) -> Any:
    return browser.find_elements("css selector", HEADERS)[position]


def test_nothing_is_requested_and_the_console_is_empty(browser: Any, page: Path) -> None:
    browser.get("about:blank")
    browser.get_log("performance")
    browser.get_log("browser")
    open_page(browser, page)
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
    assert "\u2068organisation" in said  # so that scripts from right to left move no number
    said = said.replace("\u2068", "").replace("\u2069", "")
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


def test_pointing_at_a_cell_reads_its_number(opened: Any) -> None:
    tip = opened.find_element("id", "tip")
    image = opened.find_element("css selector", "#superiority .wide svg image")
    opened.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", image)
    box = opened.execute_script("return arguments[0].getBoundingClientRect().toJSON()", image)
    corner = {"x": box["right"] - 3, "y": box["top"] + 3}
    opened.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", **corner})
    assert "is better than" in tip.text
    assert tip.text.endswith(">0.99")


@pytest.mark.parametrize(
    ("size", "theme"), [("desktop", "light"), ("tablet", "light"), ("phone", "dark")]
)
def test_axe_finds_no_serious_problem(opened: Any, size: str, theme: str) -> None:
    if not AXE.is_file():
        pytest.skip(f"axe-core is not at {AXE}: npm install axe-core, or set BAYESRANK_AXE")
    set_size(opened, *SIZES[size])
    set_media(opened, theme)
    opened.execute_script(AXE.read_text(encoding="utf-8"))
    opened.set_script_timeout(120)
    found = opened.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    serious = [
        (problem["id"], problem["nodes"][0]["html"])
        for problem in found["violations"]
        if problem["impact"] in ("serious", "critical")
    ]
    assert serious == []


GEOMETRY = """
const found = [];
const wide = document.documentElement.scrollWidth;
if (wide > window.innerWidth) found.push(`the page is ${wide} wide`);
const name = (e) => (e.textContent || e.id || e.tagName).trim().slice(0, 40);
for (const svg of document.querySelectorAll("figure svg")) {
  const frame = svg.getBoundingClientRect();
  if (frame.width === 0) continue;  // drawn for another width
  const figure = svg.closest("figure").getBoundingClientRect();
  if (frame.left < figure.left - 1 || frame.right > figure.right + 1) {
    found.push(`${svg.id || "svg"} leaves its figure`);
  }
  const texts = [...svg.querySelectorAll("text")];
  for (const mark of svg.querySelectorAll("text, path, use, image, rect")) {
    if (mark.closest("defs, clipPath")) continue;
    const box = mark.getBoundingClientRect();
    if (box.width + box.height === 0) continue;
    const clipped = mark.closest("[clip-path]");
    if (clipped) continue;  // its axes are in the frame, and limits are tested in Python
    if (box.left < frame.left - 1.5 || box.right > frame.right + 1.5 ||
        box.top < frame.top - 1.5 || box.bottom > frame.bottom + 1.5) {
      found.push(`${name(mark)} leaves ${svg.getAttribute("aria-labelledby")}`);
    }
  }
  const boxes = texts.map((text) => [name(text), text.getBoundingClientRect()]);
  for (const [i, [one, a]] of boxes.entries()) {
    for (const [other, b] of boxes.slice(i + 1)) {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      // Boxes of lines hold room for accents above the letters.
      if (across > 1 && down > 0.5 * Math.min(a.height, b.height)) {
        found.push(`${one} and ${other} overlap`);
      }
    }
  }
}
for (const table of document.querySelectorAll("table")) {
  const region = table.parentElement;
  const style = getComputedStyle(region).overflowX;
  if (region.scrollWidth > region.clientWidth + 1 && style !== "auto") {
    found.push(`${table.id} is cut`);
  }
}
return found;
"""
LOOKS = [
    *((size, theme) for size in SIZES for theme in ("light", "dark")),
    ("paper", "print"),
]


@pytest.mark.parametrize(("size", "theme"), LOOKS)
@pytest.mark.parametrize("which", ["3", "20", str(N_SYSTEMS), "battles"])
def test_nothing_is_cut_and_nothing_overlaps(
    browser: Any, pages: dict[str, Path], which: str, size: str, theme: str
) -> None:
    """The fonts of the page are not those that the figures were laid out with."""
    set_size(browser, *SIZES.get(size, PAPER))
    set_media(browser, theme)
    open_page(browser, pages[which])
    try:
        assert browser.execute_script(GEOMETRY) == []
    finally:
        set_media(browser, "light")


def test_names_stay_in_sight_on_a_phone(opened: Any) -> None:
    set_size(opened, *SIZES["phone"])
    region = opened.find_element("css selector", "#leaderboard .scroll")
    opened.execute_script("arguments[0].scrollLeft = 400", region)
    heading = opened.find_element("css selector", "#leaderboard-table tbody .heading")
    left = opened.execute_script("return arguments[0].getBoundingClientRect().left", heading)
    assert left == pytest.approx(region.rect["x"], abs=1)


def test_sixty_systems_are_drawn_in_time(browser: Any, page: Path) -> None:
    assert page.stat().st_size < MOST_BYTES
    open_page(browser, page)
    drawn = browser.execute_async_script(
        """
        const done = arguments[arguments.length - 1];
        requestAnimationFrame(() => setTimeout(() => done(performance.now()), 0));
        """
    )
    assert drawn < 1000 * MOST_SECONDS


# Half of what the pages of these data took when everything was shown below one another.
LONGEST = {
    "3": {"desktop": 3480, "tablet": 3657, "phone": 4540},
    "20": {"desktop": 6506, "tablet": 7721, "phone": 8763},
    "60": {"desktop": 13797, "tablet": 17297, "phone": 18344},
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("which", LONGEST)
def test_pages_by_all_options_are_not_too_long(
    browser: Any, pages: dict[str, Path], which: str, size: str
) -> None:
    set_size(browser, *SIZES[size])
    open_page(browser, pages[which])
    height = browser.execute_script("return document.documentElement.scrollHeight")
    assert height < LONGEST[which][size]


SHOWN = """
return [...document.querySelectorAll("details:not(:has(pre)) > :not(summary):not(.filter)")]
  .map(each => each.checkVisibility());
"""


def test_what_is_folded_opens_on_paper(opened: Any) -> None:
    assert not all(opened.execute_script(SHOWN))
    set_media(opened, "print")
    try:
        assert all(opened.execute_script(SHOWN))
        assert not any(each.is_displayed() for each in opened.find_elements("tag name", "select"))
    finally:
        set_media(opened, "light")


def test_a_phone_folds_all_tables_but_the_leaderboard(browser: Any, page: Path) -> None:
    for size, is_open in (("desktop", True), ("phone", False)):
        set_size(browser, *SIZES[size])
        open_page(browser, page)
        (groups,) = browser.find_elements("css selector", "#groups-table")
        assert groups.is_displayed() == is_open
        assert browser.find_element("id", "leaderboard-table").is_displayed()


def test_what_a_phone_folded_opens_when_it_is_turned(browser: Any, page: Path) -> None:
    set_size(browser, *SIZES["phone"])
    open_page(browser, page)
    (figure,) = browser.find_elements("css selector", "#probabilities figure")
    assert not figure.is_displayed()
    set_size(browser, *SIZES["desktop"])
    waiting.WebDriverWait(browser, 10).until(lambda _: figure.is_displayed())


def test_the_keyboard_compares_two_systems(opened: Any) -> None:
    """From the top of the page, by the keys Tab, End and Home alone."""
    opened.execute_script("document.activeElement.blur()")
    tab, end = "\ue004", "\ue010"
    for _ in range(200):
        webdriver.ActionChains(opened).send_keys(tab).perform()
        inside = "return document.activeElement.matches('#superiority select')"
        if opened.execute_script(inside):
            break
    first = opened.switch_to.active_element
    assert first.accessible_name.strip() == "Compare"
    first.send_keys(end)
    webdriver.ActionChains(opened).send_keys(tab).perform()
    second = opened.switch_to.active_element
    assert second.accessible_name.strip() == "with"
    second.send_keys("\ue011")  # Home
    said = opened.find_element("css selector", "#superiority output").text
    names = [first.get_attribute("value"), second.get_attribute("value")]
    assert names == [str(N_SYSTEMS - 1), "0"]
    assert said.endswith(": <0.01")


def test_the_first_rows_can_be_shown_alone(opened: Any) -> None:
    most = opened.find_elements("css selector", "#leaderboard .filter select")[0]
    most.send_keys("the first 10")
    shown = "#leaderboard-table tbody tr:not([hidden])"
    assert len(opened.find_elements("css selector", shown)) == 10
    header(opened, 0).click()
    header(opened, 0).click()
    rows = opened.find_elements("css selector", shown)
    assert rows[0].find_element("css selector", "td").text == str(N_SYSTEMS)
    assert len(rows) == 10


def test_paper_has_all_of_the_page(opened: Any) -> None:
    set_media(opened, "print")
    try:
        paper = opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
        assert base64.b64decode(paper["data"]).startswith(b"%PDF")
    finally:
        set_media(opened, "light")
