"""The interactive leaderboard: its table, its script in a browser, and the widget."""

import html
import json
import shutil

import pytest

import bayesrank as br
from bayesrank.reporting.interactive import explorer_html, explorer_table

NAMES = ("alpha", "Beta <b>", "gamma")
PAGE = '<!DOCTYPE html><meta charset="utf-8">'


@pytest.fixture(scope="module")
def result():
    outcomes = [[[1, 1, 1, 0]] * 6, [[1, 0, 0, 0]] * 6, [[0, 0, 0, 1]] * 5 + [[1, 1, 0, 0]]]
    return br.rank(br.Responses(outcomes, systems=NAMES), random_seed=1)


def test_every_pair_has_a_sentence(result):
    table = explorer_table(result)
    assert set(table["pairs"]) == {"0,1", "0,2", "1,2"}
    assert table["pairs"]["0,1"].startswith("\u2068alpha\u2069 minus ")
    assert "95% interval [" in table["pairs"]["0,1"]
    assert json.loads(json.dumps(table)) == table


def test_a_widget_needs_its_extra_and_says_so(result, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "anywidget", None)
    with pytest.raises(ModuleNotFoundError, match=r"bayesrank\[jupyter\]"):
        br.explore(result)


def test_the_widget_carries_table_and_selection(result):
    pytest.importorskip("anywidget", reason="needs the extra jupyter")
    widget = br.explore(result)
    assert json.loads(widget.table) == explorer_table(result)
    assert widget.selected == explorer_table(result)["systems"][:2]


def test_a_saved_notebook_shows_the_leaderboard(result):
    pytest.importorskip("anywidget", reason="needs the extra jupyter")
    shown, _ = br.explore(result)._repr_mimebundle_()
    static = shown["text/html"].partition("<script")[0]
    assert "<caption>Leaderboard" in static
    assert all(html.escape(name) in static for name in NAMES)
    assert "<b>" not in shown["text/html"]
    assert all(name in shown["text/plain"] for name in NAMES)
    assert "application/vnd.jupyter.widget-view+json" in shown


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs Selenium")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("the browser test needs Chromium and its driver (Debian: chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless", "--no-sandbox", f"--user-data-dir={tmp_path_factory.mktemp('c')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture
def shown(browser, result, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(PAGE + explorer_html(result), encoding="utf-8")
    browser.get(path.as_uri())
    waiting = pytest.importorskip("selenium.webdriver.support.wait")
    waiting.WebDriverWait(browser, 60).until(lambda _: texts(browser, "tbody th"))
    return browser


def texts(browser, selector):
    return [each.text for each in browser.find_elements("css selector", selector)]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_it_sorts_filters_and_compares(shown):
    assert texts(shown, "tbody th")[0] == "alpha"
    header = next(
        each for each in shown.find_elements("css selector", "thead button") if each.text == "score"
    )
    header.click()  # the best first
    assert texts(shown, "tbody th")[0] == "alpha"
    header.click()
    assert texts(shown, "tbody th")[-1] == "alpha"
    shown.find_element("css selector", "input").send_keys("beta")
    assert texts(shown, "tbody th") == ["Beta <b>"]
    assert texts(shown, "output")[0].startswith("\u2068alpha\u2069 minus ")
    script = "const s = document.querySelectorAll('select')[1]; s.value = arguments[0];"
    shown.execute_script(script + "s.dispatchEvent(new Event('change'))", "gamma")
    assert texts(shown, "output")[0].startswith("\u2068alpha\u2069 minus \u2068gamma\u2069")
    assert [each for each in shown.get_log("browser") if each["level"] == "SEVERE"] == []
