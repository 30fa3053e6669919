"""What the gallery shows of an example: its figures, which pyplot does not know of."""

from pathlib import Path
from typing import Any

from arviz_plots import PlotCollection
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figures among the variables of an example and return what shows them."""
    paths = []
    for value in block_vars["example_globals"].values():
        if isinstance(value, Figure | PlotCollection):
            path = Path(next(block_vars["image_path_iterator"]))
            value.savefig(path)
            paths.append(str(path))
    return figure_rst(paths, gallery_conf["src_dir"])


def _get_sg_image_scraper() -> Any:
    """Return the scraper, by the name that sphinx-gallery asks for."""
    return scrape
