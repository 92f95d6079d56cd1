"""Screenshots of the page in the browser, in docs/images: python docs/pictures/app.py.

Needs Playwright and the system's Chromium. With --all FOLDER, every state of the page is written to
this folder, at 360 and 1280 pixels, light and dark.
"""

import argparse
import re
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pandas as pd
from playwright.sync_api import sync_playwright

from classprior.datasets import make_transactions

IMAGES = Path(__file__).parents[1] / "images"
#: Width, color scheme and state of each picture in the documentation.
PICTURES = {
    "app-files": (1280, "light", "1-files"),
    "app-columns": (1280, "light", "2-columns"),
    "app-answer": (1280, "light", "4-answer"),
    "app-review": (1280, "light", "6-review"),
    "app-phone": (360, "dark", "4-answer"),
}


def visit(page, address, shoot):
    """Go through the page with the example, and take a picture of each state."""
    page.goto(address)
    shoot("1-files")
    page.get_by_role("button", name="Example with one file").click()
    page.get_by_role("heading", name="Columns and options").wait_for()
    shoot("2-columns")
    page.get_by_role("button", name="Estimate", exact=True).click()
    page.get_by_text("Cross-fitting").wait_for()
    shoot("3-progress")
    page.get_by_role("link", name="Model").wait_for()
    page.frame_locator("iframe.report").get_by_role("heading", level=1).wait_for()
    shoot("4-answer")
    page.get_by_role("button", name="Draw the rows").scroll_into_view_if_needed()
    shoot("5-budget")
    page.select_option("#sheet_format", "csv")
    page.get_by_role("button", name="Draw the rows").click()
    page.get_by_role("heading", name="rows to look at").wait_for()
    shoot("6-review")
    with page.expect_download() as download:
        page.get_by_role("link", name="review.csv").click()
    content = filled_in(download.value.path()).encode()
    sheet = {"name": "review.csv", "mimeType": "text/csv", "buffer": content}
    page.set_input_files("#checked-sheet", sheet)
    page.get_by_role("button", name="Count the checked rows").click()
    page.get_by_role("link", name="Model").wait_for()
    page.frame_locator("iframe.report").get_by_role("heading", level=1).wait_for()
    shoot("7-checked")
    page.get_by_role("link", name="classprior").click()
    shoot("8-history")


def filled_in(path):
    """Return the text of a sheet with the right answers for the example with one file."""
    known, _, is_fraud = make_transactions(random_state=0, return_truth=True)
    truth = pd.concat([pd.Series([True] * len(known)), pd.Series(is_fraud)])
    truth = truth.sample(frac=1.0, random_state=0)  # as the rows of the example
    sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
    answers = truth.iloc[sheet["row"].astype(int) - 1].map({True: "yes", False: "no"})
    return sheet.assign(checked=answers.to_numpy()).to_csv(index=False)


def main():
    parser = argparse.ArgumentParser(description="Screenshots of the page in the browser.")
    parser.add_argument("--all", type=Path, metavar="FOLDER")
    folder = parser.parse_args().all
    wanted = {values: IMAGES / f"{name}.png" for name, values in PICTURES.items()}
    program = str(Path(sys.executable).with_name("classprior"))
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    for width, scheme in product((1280, 360), ("light", "dark")):
        # A new server for each, so that the history is the same.
        server = subprocess.Popen(
            [program, "app", "--no-browser"], stderr=subprocess.PIPE, text=True
        )
        try:
            address = re.search(r"http\S+", server.stderr.readline())[0]
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium)
                size = {"width": width, "height": 900 if width > 600 else 740}
                page = browser.new_context(viewport=size, color_scheme=scheme).new_page()
                page.set_default_timeout(60_000)

                def shoot(state, page=page, width=width, scheme=scheme):
                    path = wanted.get((width, scheme, state))
                    if folder is not None:
                        path = folder / f"{state}-{width}-{scheme}.png"
                    if path is not None:
                        page.screenshot(path=path, full_page=folder is not None)

                visit(page, address, shoot)
                browser.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
