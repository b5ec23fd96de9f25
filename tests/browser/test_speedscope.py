"""speedscope opens what the analyses write, and finds an operator in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import REPOSITORY
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

SCREENSHOTS = REPOSITORY / "build/browser/screenshots"


def text_of(browser: webdriver.Chrome) -> str:
    return browser.find_element(By.TAG_NAME, "body").text


@pytest.mark.parametrize("file", ["tree.speedscope.json", "timeline.json"])
def test_it_shows_the_operators(browser: webdriver.Chrome, site: str, file: str) -> None:
    browser.get("about:blank")
    browser.get(f"{site}/index.html#profileURL={site}/{file}")
    wait = WebDriverWait(browser, 30)
    wait.until(lambda _: "Sandwich" in text_of(browser))
    for key in "23":  # the left-heavy view, for the screenshot, and then the sandwich, which is a table of names
        browser.find_element(By.TAG_NAME, "body").send_keys(key)
        save(browser, f"{file}-{key}.png")
    wait.until(lambda _: "aten::" in text_of(browser))
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.CONTROL, "f")
    wait.until(lambda _: browser.find_elements(By.TAG_NAME, "input"))
    browser.find_element(By.CSS_SELECTOR, "input[type=text], input:not([type])").send_keys("aten::linear")
    wait.until(lambda _: "aten::linear" in text_of(browser))
    save(browser, f"{file}-search.png")


def save(browser: webdriver.Chrome, name: str) -> Path:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / name
    browser.save_screenshot(str(path))
    return path
