// A little help for pages that work without it: progress, dropped files, the height of the report.
"use strict";

const each = (selector, action) => document.querySelectorAll(selector).forEach(action);

// Ask how far the work is, and load the page again when there is something new on it.
function watch(box) {
  const status = box.querySelector(".status");
  const bar = box.querySelector("progress");
  const numbers = box.querySelector(".numbers-done");
  const elapsed = box.querySelector(".elapsed");
  const hadAnswer = box.hasAttribute("data-has-answer");
  const ask = async () => {
    let found;
    try {
      const answer = await fetch(box.dataset.progress);
      if (!answer.ok) return location.reload();
      found = await answer.json();
    } catch {
      status.textContent = "The server does not answer. Was it stopped in the terminal?";
      return setTimeout(ask, 3000);
    }
    const isOpen = found.state === "running" || found.state === "waiting";
    if (!isOpen || (found.has_answer && !hadAnswer)) return location.reload();
    const text = hadAnswer ? `The answer is ready. ${found.step}…` : found.step;
    if (status.textContent !== text) status.textContent = text; // screen readers say it once
    if (found.total) {
      bar.max = found.total;
      bar.value = found.done;
    } else {
      bar.removeAttribute("value");
    }
    if (numbers) {
      const count = (n) => n.toLocaleString("en-US");
      numbers.textContent = found.total ? `${count(found.done)} of ${count(found.total)}` : "";
      elapsed.textContent = found.seconds > 2 ? `${found.seconds} s` : "";
    }
    setTimeout(ask, 500);
  };
  ask();
}

// Files dropped anywhere: onto a box, the file of that box; two onto the page, both files.
function acceptDrops(form) {
  const inputs = [...form.querySelectorAll("input[type=file]")];
  const status = form.querySelector(".status");
  const put = (input, file) => {
    const one = new DataTransfer();
    one.items.add(file);
    input.files = one.files;
  };
  const boxOf = (event) => event.target instanceof Element && event.target.closest(".drop");
  const mark = (box) => inputs.forEach((i) => i.closest(".drop").classList.toggle("over", i.closest(".drop") === box));
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    mark(boxOf(event));
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    mark(null);
    const files = [...event.dataTransfer.files];
    if (files.length > 1) {
      const chosen = inputs.slice(0, files.length);
      chosen.forEach((input, number) => put(input, files[number]));
      const texts = chosen.map((input) => `${input.labels[0].querySelector("strong").textContent}: ${input.files[0].name}.`);
      status.textContent = [...texts, form.dataset.advice || ""].join(" ");
    } else if (files.length === 1) {
      const input = boxOf(event) ? boxOf(event).querySelector("input") : inputs.find((i) => !i.files.length) || inputs[0];
      put(input, files[0]);
    }
  });
  form.addEventListener("submit", (event) => {
    const size = inputs.reduce((sum, i) => sum + (i.files.length ? i.files[0].size : 0), 0);
    if (size > Number(form.dataset.maxBytes)) {
      event.preventDefault();
      status.textContent = `These files have ${Math.round(size / 1e6).toLocaleString("en-US")} MB, more than the limit. Use a random sample of the rows.`;
    } else {
      status.textContent = "Reading the files…";
    }
  });
}

// The report runs no script, so this page makes its frame as high as it is.
function fit(frame) {
  const measure = () => {
    const page = frame.contentDocument && frame.contentDocument.documentElement;
    if (page) frame.style.height = `${Math.ceil(page.getBoundingClientRect().height) + 1}px`;
  };
  const begin = () => {
    measure();
    const page = frame.contentDocument && frame.contentDocument.documentElement;
    if (page) new ResizeObserver(measure).observe(page);
  };
  frame.addEventListener("load", begin);
  begin();
}

function offerCopy(block) {
  const button = document.createElement("button");
  const paragraph = document.createElement("p");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = "Copied";
  });
  paragraph.className = "copy";
  paragraph.append(button);
  block.after(paragraph);
}

each("[data-progress]", watch);
each("form.upload", acceptDrops);
each("iframe.report", fit);
each(".app main > section > pre", offerCopy);
