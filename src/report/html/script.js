// Values below the pointer, and shorthands for the switches. The page says everything without it.
(() => {
  'use strict';
  const make = (name, textContent, properties) =>
    Object.assign(document.createElement(name), { textContent }, properties);
  const switches = [...document.querySelectorAll('#switches input')];
  const names = switches.map((input) => input.parentElement.querySelector('label').textContent.trim());

  // All, none, and a search where there are many labels.
  const set = (wanted) => switches.forEach((input, i) => { input.checked = wanted(names[i]); });
  const button = (text, wanted) => make('button', text, { type: 'button', onclick: () => set(wanted) });
  const tools = make('div', '', { className: 'tools' });
  tools.append(button('all', () => true), button('none', () => false));
  if (document.querySelector('#switches.many')) {
    const has = (word) => (name) => name.toLowerCase().includes(word.toLowerCase());
    const oninput = (event) => set(has(event.target.value));
    const ariaLabel = 'show only labels that contain';
    tools.append(make('input', '', { type: 'search', placeholder: 'only labels with …', ariaLabel, oninput }));
  }
  document.querySelector('#switches legend').after(tools);

  const tip = make('div', '', { className: 'tip', hidden: true });
  document.body.append(tip);
  const cursor = document.createElementNS(document.querySelector('svg').namespaceURI, 'path');
  cursor.setAttribute('class', 'cursor');

  // A line that ends further away than so many pixels says nothing of a place.
  const NEAR = 8;
  const SHOWN_MAX = 8;
  const label = (group) => Number(/\bs(\d+)\b/.exec(group.getAttribute('class'))[1]);
  // A lone vertex ends in h0, which makes it a dot.
  const vertices = (group) => {
    const path = group.querySelector('.l').getAttribute('d').slice(1).replace(/h0$/, '');
    return path.split(' ').map((p) => p.split(',').map(Number));
  };
  const digits = (value) => Number(value.toPrecision(3)).toLocaleString('en', { maximumSignificantDigits: 3 });
  const nearest = (list, x) =>
    list.reduce((best, item, i) => (Math.abs(item[0] - x) < Math.abs(list[best][0] - x) ? i : best), 0);

  // Finds the points at a place: [x, heading, [[y, label, value] …]].
  const said = (chart, { x, y: pointed }) => {
    const places = chart.dataset.x?.split('|').map((place) => [parseFloat(place), place.replace(/^.*?:/, '')]);
    const [left, right, top, bottom, seconds, most] = (chart.dataset.t ?? '').split(' ').map(Number);
    const within = Math.min(Math.max(x, left), right);
    const [at, heading] = places ? places[nearest(places, x)]
      : [within, digits(((within - left) / (right - left)) * seconds) + ' s'];
    const values = new Map();
    const isCut = chart.textContent.includes('▲ up to');
    for (const group of chart.querySelectorAll('g:not(.key)')) {
      const [of, all] = [label(group), vertices(group)];
      const i = nearest(all, at);
      const y = all[i][1];
      const away = places ? all[i][0] !== at : at < all[0][0] - NEAR || at > all.at(-1)[0] + NEAR;
      // A label has a line for each repeat, and several where one has gaps: the nearest speaks for it.
      const further = values.has(of) && Math.abs(y - pointed) >= Math.abs(values.get(of)[0] - pointed);
      if (away || further || !switches[of].checked) continue;
      // A value above a scale that is cut is drawn at its end.
      const value = () => (isCut && y <= top ? '≥ ' : '≈ ') + digits(((bottom - y) / (bottom - top)) * most);
      values.set(of, [y, of, places ? group.dataset.v.split('|')[i] : value()]);
    }
    return [at, heading, [...values.values()]];
  };

  const hide = () => {
    tip.hidden = true;
    cursor.remove();
  };
  const show = (event) => {
    const chart = event.target.closest?.('svg.chart');
    if (!chart) return hide();
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
    const [at, heading, values] = said(chart, point);
    if (values.length === 0) return hide();
    values.sort((a, b) => Math.abs(a[0] - point.y) - Math.abs(b[0] - point.y));
    const lines = values.slice(0, SHOWN_MAX).sort((a, b) => a[0] - b[0]).map(([, of, value]) => {
      const line = make('div');
      line.append(make('span', names[of]), make('span', value));
      return line;
    });
    if (values.length > SHOWN_MAX) lines.push(make('div', `and ${values.length - SHOWN_MAX} more`));
    tip.replaceChildren(make('b', heading), ...lines);
    cursor.setAttribute('d', `M${at},22V${chart.dataset.b}`);
    chart.append(cursor);
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
