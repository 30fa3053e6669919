const compare = (a, b) => {
  const [x, y] = [Number(a), Number(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) {
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }
  return x - y;
};

const element = (name, text = "", properties = {}) =>
  Object.assign(document.createElement(name), { textContent: text }, properties);

function render({ model, el }) {
  const { caption, systems, columns, pairs } = JSON.parse(model.get("table"));
  const state = { column: -1, ascending: true, filter: "" };
  const root = element("div", "", { className: "bayesrank-explore" });

  const search = element("input", "", { type: "search" });
  const searchLabel = element("label", "Filter by name: ");
  searchLabel.append(search);

  const body = element("tbody");
  const headings = columns.map((column, place) => {
    const heading = element("th", "", { scope: "col", title: column.meaning });
    heading.classList.toggle("number", column.numeric);
    const button = element("button", column.header.replace("\n", " "), { type: "button" });
    button.addEventListener("click", () => {
      // The best first, and the other way round at the next click.
      state.ascending =
        state.column === place ? !state.ascending : column.best === "ascending";
      state.column = place;
      draw();
    });
    heading.append(button);
    return heading;
  });
  const headRow = element("tr");
  headRow.append(...headings);
  const head = element("thead");
  head.append(headRow);
  const table = element("table");
  table.append(element("caption", caption), head, body);
  const scroll = element("div", "", { className: "scroll", tabIndex: 0 });
  scroll.append(table);

  const draw = () => {
    headings.forEach((heading, place) => {
      if (place === state.column) {
        heading.setAttribute("aria-sort", state.ascending ? "ascending" : "descending");
      } else {
        heading.removeAttribute("aria-sort");
      }
    });
    const wanted = state.filter.trim().toLowerCase();
    const order = systems.map((_, row) => row);
    if (state.column >= 0) {
      const { keys } = columns[state.column];
      const sign = state.ascending ? 1 : -1;
      order.sort((a, b) => sign * compare(keys[a], keys[b]));
    }
    const rows = order
      .filter((row) => systems[row].toLowerCase().includes(wanted))
      .map((row) => {
        const line = element("tr");
        line.classList.toggle("selected", model.get("selected").includes(systems[row]));
        line.append(
          ...columns.map(({ cells, heading, numeric }) => {
            const cell = element(heading ? "th" : "td", cells[row]);
            cell.classList.toggle("number", numeric);
            return cell;
          }),
        );
        return line;
      });
    body.replaceChildren(...rows);
  };

  const answer = element("output");
  const choices = ["Compare ", " with "].map((text, place) => {
    const select = element("select");
    select.append(...systems.map((name) => new Option(name, name)));
    select.addEventListener("change", () => {
      model.set("selected", choices.map((choice) => choice.select.value));
      model.save_changes();
    });
    const label = element("label", text);
    label.append(select);
    return { label, select, place };
  });
  const tell = () => {
    const [first, second] = model.get("selected").map((name) => systems.indexOf(name));
    choices.forEach(({ select, place }) => {
      select.value = model.get("selected")[place] ?? "";
    });
    const key = [first, second].sort((a, b) => a - b).join(",");
    answer.textContent = pairs[key] ?? "Choose two systems.";
    draw();
  };

  search.addEventListener("input", () => {
    state.filter = search.value;
    draw();
  });
  model.on("change:selected", tell);
  root.append(searchLabel, scroll, ...choices.map(({ label }) => label), answer);
  el.append(root);
  tell();
  return () => model.off("change:selected", tell);
}

// Show it where no kernel keeps the state.
const showAlone = (el, values) => {
  const changed = [];
  const model = {
    get: (name) => values[name],
    set: (name, value) => {
      values[name] = value;
      changed.forEach((call) => call());
    },
    on: (_, call) => changed.push(call),
    off: () => {},
    save_changes: () => {},
  };
  el.replaceChildren();
  render({ model, el });
};

export default { render };
