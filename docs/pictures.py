"""Draw the pictures of the README and of the landing page into docs/static: ``make pictures``.

Needs Chromium with its driver (Debian: chromium-driver) and Selenium, which the tests use as well.
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import bayesrank as br

STATIC = Path(__file__).parent / "static"
# Pages at this size, in pixels; the pictures are shown at half of it.
WIDTH, HEIGHT = 1200, 860
# Of a figure, in inches.
SIZE = (8.0, 5.2)


def start_browser() -> Any:
    """Return Chromium without a window."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for flag in (
        "--headless",
        "--no-sandbox",
        "--hide-scrollbars",
        f"--window-size={WIDTH},{HEIGHT}",
    ):
        options.add_argument(flag)
    driver = shutil.which("chromedriver")
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def draw_report(result: Any, path: Path) -> None:
    """Write a picture of the top of a report."""
    browser = start_browser()
    with tempfile.TemporaryDirectory() as folder:
        page = br.report(result, Path(folder) / "report.html", title="Olympiad mathematics")
        browser.get(page.as_uri())
        browser.save_screenshot(str(path))
    browser.quit()


def main() -> None:
    """Draw all pictures."""
    import matplotlib.pyplot as plt

    data = br.datasets.load_olympiad("AIME'25").select(trials=range(8))
    result = br.rank(data, random_seed=1)
    for style, name in (("default", "leaderboard"), ("dark_background", "leaderboard_dark")):
        with plt.style.context(style):
            figure = br.plot_leaderboard(result, figsize=SIZE)
            figure.savefig(STATIC / f"{name}.png", dpi=110, transparent=style != "default")
    plt.close("all")
    draw_report(result, STATIC / "report.png")


if __name__ == "__main__":
    main()
