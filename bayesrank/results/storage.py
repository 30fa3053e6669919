"""Results on disk: NetCDF files and Zarr stores."""

import os
import tempfile
from pathlib import Path

import xarray as xr

_SUFFIXES = (".nc", ".zarr")


def save(result: xr.DataTree, path: str | os.PathLike[str]) -> Path:
    """Write a result under a temporary name and rename it, so that no half file is ever seen.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned.
    path : path-like
        Ends in ``.nc`` (NetCDF) or ``.zarr``; replaced if it exists.

    Returns
    -------
    pathlib.Path
        Where it is.

    Raises
    ------
    ValueError
        If the ending is another one.
    FileNotFoundError
        If the folder does not exist.
    """
    target = Path(path)
    check_ending(target)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path must be in an existing folder; got {str(path)!r}")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".bayesrank-") as folder:
        draft = Path(folder) / target.name
        if target.suffix == ".nc":
            result.to_netcdf(draft, engine="h5netcdf")
        else:
            # Consolidated metadata are not part of the Zarr v3 format.
            result.to_zarr(draft, consolidated=False)
            if target.is_dir():
                # A folder cannot be replaced; the old one goes with the temporary folder.
                os.replace(target, Path(folder) / "replaced")
        os.replace(draft, target)
    return target


def check_ending(path: Path) -> None:
    """Raise unless the ending of a path says how to write a result there.

    Parameters
    ----------
    path : pathlib.Path
        Where a result is to be saved.

    Raises
    ------
    ValueError
        If the ending is none that :func:`save` knows.
    """
    if path.suffix not in _SUFFIXES:
        raise ValueError(f"path must end in {' or '.join(_SUFFIXES)}; got {str(path)!r}")


def load(path: str | os.PathLike[str]) -> xr.DataTree:
    """Read a result into memory.

    Parameters
    ----------
    path : path-like
        A file that :func:`save` or ArviZ wrote.

    Returns
    -------
    xarray.DataTree

    Raises
    ------
    ValueError
        If it is no such file.
    FileNotFoundError
        If there is none.
    """
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"path must exist; got {str(path)!r}")
    try:
        if source.is_dir():
            with xr.open_datatree(source, engine="zarr", consolidated=False) as tree:
                return tree.load()
        with xr.open_datatree(source, engine="h5netcdf") as tree:
            return tree.load()
    except (OSError, KeyError) as error:
        raise ValueError(f"path must hold a NetCDF or Zarr result; got {str(path)!r}") from error
