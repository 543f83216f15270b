/**
 * The reporter of one test process: what a person reads goes to standard output in node's own `spec` form, what
 * test/run.ts counts goes as JSON lines to file descriptor 3.
 *
 * Must stay true: the counts are node's own summary; a process that ends without one has not passed.
 */
import { writeSync } from 'node:fs';
import { Readable } from 'node:stream';
import { spec, type TestEvent } from 'node:test/reporters';

const RESULTS_FD = 3;

/** Node's counts of one process, under their names in its closing lines. */
export interface TestCounts {
  readonly tests: number;
  readonly suites: number;
  readonly passed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly skipped: number;
  readonly todo: number;
}

/** One line on the results descriptor; `test` is its name after those of the suites around it. */
export type ResultLine =
  | { readonly kind: 'running' | 'done'; readonly test: string }
  | { readonly kind: 'failed'; readonly test: string }
  | { readonly kind: 'skipped'; readonly test: string; readonly reason: string }
  | { readonly kind: 'summary'; readonly counts: TestCounts };

function send(line: ResultLine): void {
  writeSync(RESULTS_FD, `${JSON.stringify(line)}\n`);
}

/** The closing lines of one process would be mistaken for those of the run. */
function isClosingLine(event: TestEvent): boolean {
  if (event.type !== 'test:diagnostic' || event.data.nesting > 0) return false;
  return /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/.test(event.data.message);
}

/** Sends what the run counts; `names` holds those of the suites around the event and its own, by nesting. */
function note(event: TestEvent, names: string[]): void {
  if (event.type === 'test:dequeue') send({ kind: 'running', test: event.data.name });
  if (event.type === 'test:complete') send({ kind: 'done', test: event.data.name });
  if (event.type === 'test:start' || event.type === 'test:pass' || event.type === 'test:fail') {
    names.splice(event.data.nesting, Infinity, event.data.name);
  }
  const test = names.join(' > ');
  if (event.type === 'test:fail' && event.data.details.type !== 'suite') send({ kind: 'failed', test });
  if (event.type === 'test:pass') {
    const { skip, todo } = event.data;
    const given = [skip, todo].find((mark) => typeof mark === 'string' && mark !== '');
    if (skip !== undefined || todo !== undefined) send({ kind: 'skipped', test, reason: String(given ?? 'no reason') });
  }
  if (event.type === 'test:summary') {
    const { tests, suites, passed, cancelled, skipped, todo } = event.data.counts;
    const failed = tests - passed - cancelled - skipped - todo;
    send({ kind: 'summary', counts: { tests, suites, passed, failed, cancelled, skipped, todo } });
  }
}

async function* noted(source: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  const names: string[] = [];
  for await (const event of source) {
    note(event, names);
    if (!isClosingLine(event)) yield event;
  }
}

/** Node takes reporters as default exports. */
export default async function* report(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  yield* Readable.from(noted(source)).pipe(new spec());
}
