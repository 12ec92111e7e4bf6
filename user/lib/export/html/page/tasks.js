// SPDX-License-Identifier: MIT
// The table of tasks: what each task did in the time in view.

const SHOWN_ROWS = 400;

const isRecorder = row => row.name === 'kbarman' || row.name === 'kbarmand' ? 1 : 0;

class Tasks {
  constructor(capture, page) {
    this.capture = capture;
    this.page = page;
    this.columns = [
      { key: 'name', title: 'Task', text: true },
      { key: 'tid', title: 'tid' },
      { key: 'run', title: 'CPU time', show: row => duration(row.run) },
      { key: 'part', title: '%', about: 'of the time of all CPUs in view; Run % of a report is of one CPU', show: row => row.part.toFixed(1) },
      { key: 'runs', title: 'runs', show: row => count(row.runs) },
      { key: 'preempted', title: 'preempted', show: row => count(row.preempted) },
      { key: 'ready', title: 'waited', about: 'preempted, until it ran again: the part in view', waits: true },
      { key: 'blocked', title: 'blocked', show: row => count(row.blocked) },
      { key: 'away', title: 'waited', about: 'blocked, until it ran again: the part in view', waits: true },
      { key: 'samples', title: 'samples', show: row => count(row.samples) },
    ];
    // What a thinned page sums up has no waits.
    if (capture.thinned) this.columns = this.columns.filter(column => !column.waits);
    else this.makeWaits();
    this.rows = [];
    this.idle = this.lost = 0;
    this.unfolded = false;
    this.order = 'run';
    this.down = true;
    this.writeHeads();
    byId('body').addEventListener('click', event => {
      const row = event.target.closest('tr');
      if (row) this.take(row);
    });
    byId('body').addEventListener('keydown', event => this.key(event));
  }

  take(row) {
    if (row.dataset.task !== undefined) this.page.toggle(+row.dataset.task);
    else {
      this.unfolded = !this.unfolded;
      this.write();
      byId('body').querySelector('.fold').focus();
    }
  }

  writeHeads() {
    byId('heads').replaceChildren(element('tr', {}, ...this.columns.map(column => {
      const head = element('th', { scope: 'col' }, element('button', {
        type: 'button', textContent: column.title, title: column.about || '',
        onclick: () => {
          this.down = this.order === column.key ? !this.down : !column.text;
          this.order = column.key;
          this.write();
        },
      }));
      column.head = head;
      return head;
    })));
  }

  // From the end of each run of a task to its next one, by the row that ran before.
  makeWaits() {
    const { capture } = this, runs = [], last = new Map();
    for (const cpu of capture.cpus)
      for (let i = 0; i < cpu.length; i++) if (cpu.kind[i] === RUN && isBusy(cpu, i, capture)) runs.push([cpu.start[i], cpu.end[i], cpu.what[i], cpu.how[i], cpu.node[i]]);
    runs.sort((a, b) => a[1] - b[1]);	// as a report takes them
    this.waits = [];
    for (const [start, end, task, how, node] of runs) {
      const tid = capture.tasks[task][0], before = last.get(tid);
      if (before && before.how && start >= before.end) this.waits.push({ start: before.end, end: start, task: before.task, how: before.how, node: before.node });
      last.set(tid, { end, how, task, node });
    }
  }

  sumWaits(start, end) {
    const nr = this.capture.tasks.length;
    this.waited = { ready: new Float64Array(nr), away: new Float64Array(nr) };
    for (const wait of this.waits) {
      const length = Math.min(wait.end, end) - Math.max(wait.start, start);
      if (length > 0) this.waited[wait.how === 1 ? 'ready' : 'away'][wait.task] += length;
    }
  }

  value(row, column) { return column.waits && !row.fold ? this.waited[column.key][row.task] : row[column.key]; }

  sum(start, end) {
    if (this.waits) this.sumWaits(start, end);
    const { thinned } = this.capture;
    this.pending = this.isRough = false;
    if (!thinned || thinned.isFull) return this.sumShown(start, end);
    const sums = thinned.sumsOf(start, end);
    this.pending = !sums;
    if (!sums) return;
    this.isRough = sums.isRough;
    this.makeRows(sums);
  }

  // Sums over the slices and samples between two times. A slice that is cut counts as one.
  sumShown(start, end) {
    const { capture } = this, nr = capture.tasks.length;
    const run = new Float64Array(nr), runs = new Uint32Array(nr), preempted = new Uint32Array(nr), blocked = new Uint32Array(nr), samples = new Uint32Array(nr);
    let idle = 0, lost = 0, known = 0;
    for (const cpu of capture.cpus) {
      const to = lowerBound(cpu.start, end);
      for (let i = lowerBound(cpu.end, start); i < to; i++) {
        const length = Math.min(cpu.end[i], end) - Math.max(cpu.start[i], start), task = cpu.what[i];
        known += length;
        if (cpu.kind[i] === IDLE) idle += length;
        else if (cpu.kind[i] === LOST) lost += length;
        else {
          run[task] += length;
          if (!isBusy(cpu, i, capture)) idle += length;
          runs[task]++;
          if (cpu.how[i] === 1) preempted[task]++;
          else if (cpu.how[i] === 2) blocked[task]++;
        }
      }
      const times = cpu.samples.time, last = lowerBound(times, end);
      for (let i = lowerBound(times, start); i < last; i++) samples[cpu.samples.task[i]]++;
      if (end >= capture.length && last < times.length) for (let i = last; i < times.length; i++) samples[cpu.samples.task[i]]++;
    }
    this.makeRows({ run, runs, preempted, blocked, samples, idle, lost, known });
  }

  makeRows({ run, runs, preempted, blocked, samples, idle, lost, known }) {
    const { capture } = this;
    this.rows = [];
    for (let i = 0; i < capture.tasks.length; i++)
      if (runs[i] || samples[i])
        this.rows.push({ task: i, tid: capture.tasks[i][0], name: capture.tasks[i][2], run: run[i], part: known ? 100 * run[i] / known : 0, runs: runs[i], preempted: preempted[i], blocked: blocked[i], samples: samples[i] });
    this.idle = known ? idle / known : 0;
    this.lost = lost;
  }

  write() {
    const { order, down, page } = this, sign = down ? -1 : 1;
    const isShown = row => !page.query || page.searched(row.task) || row.task === page.chosen, rows = this.rows.filter(isShown);
    const by = this.columns.find(column => column.key === order);
    // what the recording cost is no part of what was recorded: it comes last
    rows.sort((a, b) => isRecorder(a) - isRecorder(b) || sign * (by.text ? a.name.localeCompare(b.name) : this.value(a, by) - this.value(b, by)) || a.tid - b.tid);
    for (const column of this.columns)
      column.head.setAttribute('aria-sort', column.key === order ? (down ? 'descending' : 'ascending') : 'none');
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.task : undefined;
    const shown = this.fold(rows).slice(0, SHOWN_ROWS);
    byId('body').replaceChildren(...shown.map((row, i) => this.makeRow(row, i)));
    if (focused !== undefined) {
      const again = byId('body').querySelector(`[data-task="${focused}"]`);
      if (again) again.focus();
    }
    const left = this.rows.length - rows.length, out = left ? `, ${count(left)} of ${count(this.rows.length)} tasks left out by the search` : '';
    const more = rows.length > SHOWN_ROWS ? `, the first ${SHOWN_ROWS} of ${count(rows.length)}` : out;
    if (this.pending) byId('range').textContent = 'reading the sums of the time in view …';
    else byId('range').textContent = `${this.isRough ? 'about ' : ''}${duration(page.timeline.start, (page.timeline.end - page.timeline.start) / 1000)} to ${duration(page.timeline.end, (page.timeline.end - page.timeline.start) / 1000)}, ${(100 * this.idle).toFixed(0)} % idle${more}`;
  }

  // Several rows of the recorder are one, with their sums; they stand below it when it is clicked.
  fold(rows) {
    const own = rows.filter(isRecorder), { page } = this;
    if (own.length < 2 || page.query || own.some(row => row.task === page.chosen)) return rows;
    const sum = { fold: own, name: `kbarman: ${own.length} tasks`, tid: '' };
    for (const { key, text, waits } of this.columns)
      if (!text && key !== 'tid') sum[key] = own.reduce((all, row) => all + (waits ? this.waited[key][row.task] : row[key]), 0);
    return [...rows.slice(0, rows.length - own.length), sum, ...this.unfolded ? own : []];
  }

  makeRow(row, i) {
    const { page } = this, swatch = element('i');
    if (row.fold) swatch.textContent = this.unfolded ? '▾' : '▸';
    else swatch.style.background = page.colourOf(row.task);
    const made = element('tr', { tabIndex: row.task === page.chosen || (page.chosen === undefined && i === 0) ? 0 : -1 },
      ...this.columns.map(column => column.text ? element('td', { title: row.name }, swatch, row.name) : element('td', {}, column.waits ? duration(this.value(row, column)) : column.show ? column.show(row) : String(row[column.key]))));
    if (row.fold) {
      made.className = 'fold';
      made.setAttribute('aria-expanded', this.unfolded);
      return made;
    }
    made.dataset.task = row.task;
    made.setAttribute('aria-selected', row.task === page.chosen);
    made.classList.toggle('match', page.searched(row.task));
    return made;
  }

  key(event) {
    const row = event.target.closest('tr');
    if (!row) return;
    const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
    if (next) next.focus();
    else if (event.key === 'Enter' || event.key === ' ') this.take(row);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
