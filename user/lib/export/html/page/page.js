// SPDX-License-Identifier: MIT
// The page: selection, search, keys and mouse.

class Page {
  constructor(capture) {
    this.capture = capture;
    this.query = '';
    this.chosen = undefined;
    this.ownRows = [];
    this.colourCache = [];
    this.setTheme(matchMedia('(prefers-color-scheme: dark)').matches);
    this.writeHead();
    this.thinned = capture.thinned;
    if (this.thinned) this.thinned.page = this;
    byId('thinned').hidden = !this.thinned;
    this.timeline = new Timeline(capture, this);
    this.tasks = new Tasks(capture, this);
    this.flame = new Flame(capture, this);
    this.listen();
    this.fitRows();
    this.update();
  }

  writeHead() {
    const { facts } = this.capture, title = facts.command || facts.target || 'capture';
    document.title = `${title} — kbarman`;
    byId('title').textContent = title;
    const parts = [facts.host, facts.release && `Linux ${facts.release}`, `${facts.cpus} CPU${facts.cpus === 1 ? '' : 's'}`,
      duration(this.capture.length), `${count(facts.records)} records${facts.part ? ', which options chose' : ''}`, facts.epoch ? new Date(facts.epoch).toISOString().replace('T', ' ').slice(0, 19) + ' UTC' : ''];
    byId('facts').append(parts.filter(part => part).join(' · '));
    if (facts.lost) byId('facts').append(' · ', element('span', { className: 'lost' }, `${count(facts.lost)} lost`));
  }

  // ---- tasks, for the other parts of the page

  nameOf(task) {
    const [tid, tgid, name] = this.capture.tasks[task];
    return tgid === tid ? `${name} (${tid})` : `${name} (${tgid}/${tid})`;
  }

  colourOf(task) { return this.colourCache[task] || (this.colourCache[task] = taskColour(this.capture.tasks[task][2])); }
  matches(text) { return this.query !== '' && text.toLowerCase().includes(this.query); }
  searched(task) { return this.hits !== undefined && this.hits[task] === 1; }
  filtered() { return this.chosen !== undefined || (this.hits !== undefined && this.anyHit); }

  isLit(task) {
    if (this.chosen !== undefined) return this.capture.tasks[task][0] === this.capture.tasks[this.chosen][0];
    return this.hits === undefined || !this.anyHit || this.hits[task] === 1;
  }

  // ---- changes

  // Give a task a row of its own and choose it, or take both away.
  toggle(task) {
    const isOther = own => this.capture.tasks[own][0] !== this.capture.tasks[task][0], others = this.ownRows.filter(isOther);
    const isNew = others.length === this.ownRows.length;
    if (isNew) others.push(task);
    this.showRows(others);
    if (isNew === (this.chosen === undefined || isOther(this.chosen))) this.choose(task);
    else this.update();
  }

  showRows(tasks) {
    this.timeline.placeTasks(this.ownRows = tasks);
    if (this.picked && !tasks.includes(this.picked.row.task)) this.pick();
    this.showGroups();
    this.fitRows();
  }

  // What the colours of waiting pieces mean, of those that the capture has.
  showGroups() {
    const { objects = [] } = this.capture, found = new Set(objects.map(groupOf));
    byId('groups').hidden = !this.ownRows.length || !found.size;
    byId('groups').replaceChildren('waiting for', ...Object.keys(WAITS).filter(group => found.has(group)).map(group => {
      const swatch = element('i');
      swatch.style.background = `var(--${group})`;
      return element('span', {}, swatch, WAITS[group]);
    }));
  }

  // Say what a task waits for in a piece of its row; nothing, if it is said already.
  pick(picked, isSame = false) {
    this.picked = isSame ? undefined : picked;
    byId('picked').hidden = !this.picked;
    byId('picked').textContent = this.picked ? this.picked.text : '';
    this.fitRows();
    this.timeline.draw();
  }

  // The next wait of the chosen task, or of the first one with a row.
  pickNext(forwards) {
    const { timeline, picked } = this, row = timeline.taskRows.find(own => own.task === this.chosen) || timeline.taskRows[0];
    if (!row) return;
    const i = nextWait(row, picked && picked.row.task === row.task ? picked.start : forwards ? timeline.start : timeline.end, forwards, timeline);
    if (i < 0) return;
    this.pick(pickState(row, i, timeline));
    const { start, end } = this.picked, half = (timeline.end - timeline.start) / 2, middle = start + Math.min((end - start) / 2, half);
    if (start < timeline.start || end > timeline.end) timeline.show(middle - half, middle + half);
  }

  choose(task) {
    this.chosen = this.chosen === task ? undefined : task;
    this.timeline.draw();
    this.tasks.write();
    this.flame.update();
  }

  search(text) {
    this.query = text.trim().toLowerCase();
    this.hits = this.query ? Uint8Array.from(this.capture.tasks, ([tid, , name]) => this.matches(name) || String(tid) === this.query ? 1 : 0) : undefined;
    this.anyHit = this.query !== '' && this.hits.includes(1);
    this.searchStacks();
    const tasks = this.query ? this.hits.reduce((a, b) => a + b, 0) : 0;
    const functions = this.query ? this.capture.frames.filter(frame => this.matches(frame[0])).length : 0;
    const marks = this.query ? this.capture.marks.filter(mark => this.matches(mark.text)).length : 0;
    const found = [[tasks, 'task'], [functions, 'function'], [marks, 'mark']].map(([nr, what]) => `${count(nr)} ${what}${nr === 1 ? '' : 's'}`).join(', ');
    byId('found').textContent = this.query ? found + this.unsearched() : '';
    this.timeline.draw();
    this.tasks.write();
    this.flame.say();
    this.flame.draw();
  }

  // What no search looks at.
  unsearched() {
    return this.thinned && !this.thinned.isFull ? '; an overview marks one sample of many: zoom in, or press n' : '';
  }

  // The nodes whose chain has a function that was searched for; callers come before what they call.
  searchStacks() {
    const { frames, nodes, parents } = this.capture, hit = frames.map(frame => this.matches(frame[0]));
    this.nodeHits = undefined;
    if (!hit.includes(true)) return;
    this.nodeHits = new Uint8Array(nodes.length);
    for (let i = 1; i < nodes.length; i++) this.nodeHits[i] = hit[nodes[i]] || this.nodeHits[parents[i]] ? 1 : 0;
  }

  isSampleFound(node) { return this.nodeHits !== undefined && this.nodeHits[node] === 1; }

  setTheme(dark) {
    document.documentElement.classList.toggle('dark', dark);
    readColours();
    this.colourCache = [];
  }

  toggleTheme() {
    this.setTheme(!colours.dark);
    this.update();
  }

  update() {
    this.draw();
    this.tasks.sum(this.timeline.start, this.timeline.end);
    this.tasks.write();
    this.flame.update();
  }

  draw() {
    if (this.thinned) this.thinned.arrange(this.timeline.start, this.timeline.end);
    this.timeline.draw();
  }

  // Draw at once, but compute the sums when the view no longer moves.
  viewChanged() {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
    clearTimeout(this.later);
    this.later = setTimeout(() => this.update(), 120);
  }

  fit() { this.timeline.show(0, this.capture.length); }

  clear() {
    this.chosen = undefined;
    this.showRows([]);
    byId('search').value = '';
    this.search('');
    this.flame.update();
  }

  // Not higher than its content, and at most half of the page.
  fitRows() {
    const room = document.querySelector('main').clientHeight;
    byId('rows').style.height = Math.max(90, Math.min(this.timeline.total, room * 0.52)) + 'px';
  }

  resizeRows(height) {
    const room = document.querySelector('main').clientHeight;
    byId('rows').style.height = Math.max(60, Math.min(height, room - 120)) + 'px';
    this.timeline.draw();
    this.flame.draw();
  }

  // ---- mouse

  listen() {
    const box = byId('rows'), canvas = byId('timeline');
    addEventListener('resize', () => { this.fitRows(); this.update(); });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', event => { this.setTheme(event.matches); this.update(); });
    addEventListener('keydown', event => this.key(event));
    box.addEventListener('scroll', () => this.timeline.draw());
    box.addEventListener('wheel', event => this.wheel(event), { passive: false });
    canvas.addEventListener('pointerdown', event => this.drag(event));
    canvas.addEventListener('dblclick', () => this.fit());
    canvas.addEventListener('pointermove', event => {
      const text = event.buttons ? null : this.timeline.describe(event);
      if (text) tip.show(event, ...text);
      else tip.hide();
    });
    canvas.addEventListener('pointerleave', tip.hide);
    byId('overview').addEventListener('pointerdown', event => this.dragOverview(event));
    byId('split').addEventListener('pointerdown', event => this.follow(event, e => this.resizeRows(e.clientY - box.getBoundingClientRect().top)));
    byId('split').addEventListener('keydown', event => {
      const by = { ArrowUp: -30, ArrowDown: 30 }[event.key];
      if (by) { this.resizeRows(box.clientHeight + by); event.preventDefault(); event.stopPropagation(); }
    });
    byId('search').addEventListener('input', event => this.search(event.target.value));
    byId('in').addEventListener('click', () => this.timeline.zoom(2));
    byId('out').addEventListener('click', () => this.timeline.zoom(0.5));
    byId('fit').addEventListener('click', () => this.fit());
    byId('theme').addEventListener('click', () => this.toggleTheme());
    byId('help').addEventListener('click', () => byId('keys').showModal());
  }

  wheel(event) {
    if (event.altKey) return;	// the browser scrolls
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.timeline.move(event.deltaX / this.timeline.width);
    else this.timeline.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), this.timeline.at(event).time);
  }

  follow(event, moved, done = () => {}) {
    const target = event.currentTarget;
    target.setPointerCapture(event.pointerId);
    const finish = e => {
      target.removeEventListener('pointermove', moved);
      target.removeEventListener('pointerup', finish);
      target.removeEventListener('pointercancel', finish);
      done(e);
    };
    target.addEventListener('pointermove', moved);
    target.addEventListener('pointerup', finish);
    target.addEventListener('pointercancel', finish);
  }

  drag(event) {
    if (event.button) return;
    const { timeline } = this, box = byId('rows'), from = timeline.at(event), view = [timeline.start, timeline.end];
    const scrolled = box.scrollTop, marking = event.shiftKey;
    let far = false, to = from.time;
    tip.hide();
    this.follow(event, e => {
      const by = e.clientX - event.clientX;
      far = far || Math.hypot(by, e.clientY - event.clientY) > 3;
      if (!far) return;
      box.classList.add(marking ? 'mark' : 'drag');
      if (marking) {
        to = timeline.at(e).time;
        timeline.draw();
        const c = timeline.context, x = timeline.x(from.time);
        c.globalAlpha = 0.2;
        c.fillStyle = colours.accent;
        c.fillRect(x, 0, timeline.x(to) - x, timeline.height);
        c.globalAlpha = 1;
        return;
      }
      timeline.show(view[0] - by / timeline.scale, view[1] - by / timeline.scale);
      box.scrollTop = scrolled - (e.clientY - event.clientY);
    }, e => {
      box.classList.remove('drag', 'mark');
      if (far && marking) timeline.show(Math.min(from.time, to), Math.max(from.time, to));
      const task = far ? undefined : timeline.taskAt(e);
      if (task !== undefined) this.choose(task);
      const { row, time, inside } = timeline.at(e);
      if (far || !inside || !row || row.kind !== 'task') return;
      const picked = pickState(row, statesOf(row, this.capture).at(time), timeline);
      this.pick(picked, picked && this.picked && picked.row.task === this.picked.row.task && picked.start === this.picked.start);
    });
  }

  dragOverview(event) {
    const { timeline } = this, box = event.currentTarget.getBoundingClientRect();
    const go = e => {
      const middle = (e.clientX - box.left - gutter) / (box.width - gutter) * this.capture.length, half = (timeline.end - timeline.start) / 2;
      timeline.show(middle - half, middle + half);
    };
    go(event);
    this.follow(event, go);
  }

  // ---- keys

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId('keys').open) return;
    if (event.target === byId('search')) {
      if (event.key === 'Escape') { this.clear(); byId('search').blur(); }
      else if (event.key === 'Enter') this.timeline.jump(!event.shiftKey);
      return;
    }
    const action = {
      ArrowLeft: () => this.timeline.move(-0.2), ArrowRight: () => this.timeline.move(0.2),
      '+': () => this.timeline.zoom(1.6), '=': () => this.timeline.zoom(1.6), '-': () => this.timeline.zoom(1 / 1.6),
      0: () => this.fit(), Home: () => this.fit(), '/': () => byId('search').focus(),
      w: () => this.pickNext(true), W: () => this.pickNext(false),
      n: () => this.timeline.jump(true), p: () => this.timeline.jump(false),
      t: () => this.toggleTheme(), '?': () => byId('keys').showModal(), Escape: () => this.clear(),
    }[event.key];
    if (!action || event.target.tagName === 'SELECT') return;
    event.preventDefault();
    action();
  }
}

let page;

function open(capture) {
  page = new Page(capture);
  document.body.dataset.ready = performance.now().toFixed(0);
}

const opened = elements('piece').length ? new Thinned(readTables()).open().then(open) : open(readCapture());
