// Values below the pointer, and shorthands for the switches. The page says everything without it.
(() => {
  'use strict';
  const make = (name, text) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const switches = [...document.querySelectorAll('#switches input')];
  const names = switches.map((input) => input.parentElement.querySelector('label').textContent.trim());

  // All, none, and a search where there are many labels.
  const tools = make('div');
  tools.className = 'tools';
  const set = (wanted) => switches.forEach((input, i) => { input.checked = wanted(i); });
  const button = (text, wanted) => {
    const element = make('button', text);
    element.type = 'button';
    element.addEventListener('click', () => set(wanted));
    tools.append(element);
  };
  button('all', () => true);
  button('none', () => false);
  if (document.querySelector('#switches.many')) {
    const search = make('input');
    search.type = 'search';
    search.placeholder = 'only labels with …';
    search.setAttribute('aria-label', 'show only labels that contain');
    search.addEventListener('input', () => {
      const words = search.value.toLowerCase();
      set((i) => names[i].toLowerCase().includes(words));
    });
    tools.append(search);
  }
  document.querySelector('#switches legend').after(tools);

  const tip = make('div');
  tip.className = 'tip';
  tip.hidden = true;
  document.body.append(tip);
  let cursor;

  const label = (group) => Number(/\bs(\d+)\b/.exec(group.getAttribute('class'))[1]);
  // A lone vertex ends in h0, which makes it a dot.
  const vertices = (group) => {
    const path = group.querySelector('.l').getAttribute('d').slice(1).replace(/h0$/, '');
    return path.split(' ').map((p) => p.split(',').map(Number));
  };
  const digits = (value) => Number(value.toPrecision(3)).toLocaleString('en', { maximumFractionDigits: 3 });
  const nearest = (list, x) =>
    list.reduce((best, item, i) => (Math.abs(item - x) < Math.abs(list[best] - x) ? i : best), 0);

  // A line that ends further away than so many pixels says nothing of a place.
  const NEAR = 8;

  // What stands at a place: [x, heading, [[y, label, value] …]].
  const said = (chart, { x, y: pointed }) => {
    const groups = [...chart.querySelectorAll('g')].filter((g) => switches[label(g)].checked);
    if (chart.dataset.x !== undefined) {
      const places = chart.dataset.x.split('|').map((place) => {
        const colon = place.indexOf(':');
        return [Number(place.slice(0, colon)), place.slice(colon + 1)];
      });
      const [at, heading] = places[nearest(places.map((place) => place[0]), x)];
      const values = groups.flatMap((group) => {
        const i = vertices(group).findIndex((vertex) => Math.abs(vertex[0] - at) < 0.06);
        return i < 0 ? [] : [[vertices(group)[i][1], label(group), group.dataset.v.split('|')[i]]];
      });
      return [at, heading, values];
    }
    const [left, right, top, bottom, seconds, most] = chart.dataset.t.split(' ').map(Number);
    const at = Math.min(Math.max(x, left), right);
    // A label has a line for each repeat, and several where one has gaps: the nearest speaks for it.
    const heights = new Map();
    for (const group of groups) {
      const all = vertices(group);
      if (at < all[0][0] - NEAR || at > all[all.length - 1][0] + NEAR) continue;
      const y = all[nearest(all.map((vertex) => vertex[0]), at)][1];
      const known = heights.get(label(group));
      if (known === undefined || Math.abs(y - pointed) < Math.abs(known - pointed)) heights.set(label(group), y);
    }
    const values = [...heights].map(([of, y]) =>
      [y, of, '≈ ' + digits(((bottom - y) / (bottom - top)) * most)]);
    return [at, digits(((at - left) / (right - left)) * seconds) + ' s', values];
  };

  const hide = () => {
    tip.hidden = true;
    if (cursor) cursor.remove();
    cursor = undefined;
  };
  const show = (event) => {
    const chart = event.target.closest && event.target.closest('svg.chart');
    if (!chart) return hide();
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
    const [at, heading, values] = said(chart, point);
    if (values.length === 0) return hide();
    const shown = values.sort((a, b) => Math.abs(a[0] - point.y) - Math.abs(b[0] - point.y)).slice(0, 8);
    shown.sort((a, b) => a[0] - b[0]);
    tip.replaceChildren(make('b', heading), ...shown.map(([, of, value]) => {
      const line = make('div');
      line.append(make('span', names[of]), make('span', value));
      return line;
    }));
    if (values.length > shown.length) tip.append(make('div', `and ${values.length - shown.length} more`));
    if (!cursor || cursor.parentNode !== chart) {
      if (cursor) cursor.remove();
      cursor = document.createElementNS(chart.namespaceURI, 'path');
      cursor.setAttribute('class', 'cursor');
      chart.append(cursor);
    }
    cursor.setAttribute('d', `M${at},22V${chart.viewBox.baseVal.height - 38}`);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const x = event.clientX + 16 + width > innerWidth ? event.clientX - 16 - width : event.clientX + 16;
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 12, innerHeight - height - 4))}px`;
  };
  document.addEventListener('pointermove', show);
  document.addEventListener('pointerdown', show);
  document.addEventListener('scroll', hide, { passive: true });
})();
