/**
 * A `git cat-file --batch-command` kept open: objects read one after another without starting a process for each.
 *
 * Must stay true: answers come in the order of the questions; a process that dies fails what was asked of it and
 * is started again for the next question; only full object ids are asked for.
 */
import type { ObjectId } from '../../core/kernel/ids.ts';
import { objectId } from '../../core/kernel/ids.ts';
import { type ObjectInfo, ObjectDatabaseError, type ObjectType } from '../../core/ports/object-database.ts';
import type { RunningProcess } from './process-runner.ts';

export interface ReadObject {
  readonly type: ObjectType;
  readonly bytes: Buffer;
}

export interface CatFile {
  /** Type and size; null for an id that is not there. `suffix` may be `^{}`, to follow tags to their end. */
  info(id: ObjectId, suffix?: '^{}'): Promise<ObjectInfo | null>;
  read(id: ObjectId): Promise<ReadObject | null>;
  close(): void;
}

interface Question {
  readonly contents: boolean;
  resolve(answer: { readonly info: ObjectInfo; readonly bytes: Buffer } | null): void;
  reject(error: Error): void;
}

const LINE_FEED = 0x0a;
const HEADER = /^([0-9a-f]{40}) (commit|tree|blob|tag) (\d+)$/;

export function createCatFile(start: () => Promise<RunningProcess>): CatFile {
  let running: Promise<RunningProcess> | null = null;
  let questions: Question[] = [];
  let held: Buffer[] = [];
  let heldBytes = 0;
  /** Until so many bytes are held there is no use in joining them: that would be quadratic for a large object. */
  let neededBytes = 0;
  let closed = false;

  const fail = (cause: unknown): void => {
    const failed = questions;
    questions = [];
    held = [];
    heldBytes = 0;
    neededBytes = 0;
    running = null;
    const error = new ObjectDatabaseError('object-database-unavailable', 'git cat-file ended', { cause });
    for (const question of failed) question.reject(error);
  };

  /** Answers what can be answered from the bytes held. */
  const drain = (): void => {
    for (let question = questions[0]; question !== undefined; question = questions[0]) {
      if (heldBytes < neededBytes) return;
      const bytes = held.length === 1 && held[0] !== undefined ? held[0] : Buffer.concat(held, heldBytes);
      held = [bytes];
      const end = bytes.indexOf(LINE_FEED);
      if (end === -1) return;
      const [, id, type, size] = HEADER.exec(bytes.toString('latin1', 0, end)) ?? [];
      const sizeBytes = Number(size);
      const taken = id === undefined || !question.contents ? end + 1 : end + 1 + sizeBytes + 1;
      neededBytes = taken;
      if (bytes.length < taken) return;
      neededBytes = 0;
      questions.shift();
      held = [bytes.subarray(taken)];
      heldBytes = bytes.length - taken;
      if (id === undefined) question.resolve(null);
      else {
        const info = { id: objectId(id), type: type as ObjectType, sizeBytes };
        question.resolve({ info, bytes: bytes.subarray(end + 1, question.contents ? end + 1 + sizeBytes : end + 1) });
      }
    }
  };

  const open = (): Promise<RunningProcess> => {
    running ??= start().then((process) => {
      process.stdout?.on('data', (chunk: Buffer) => {
        held.push(chunk);
        heldBytes += chunk.length;
        drain();
      });
      // It comes paused, and a listener alone does not undo that.
      process.stdout?.resume();
      process.stdin?.on('error', fail);
      void process.ended.then((end) => fail(new Error(end.stderr)));
      return process;
    });
    running.catch(fail);
    return running;
  };

  const ask = async (line: string, contents: boolean): Promise<{ info: ObjectInfo; bytes: Buffer } | null> => {
    if (closed) throw new ObjectDatabaseError('object-database-unavailable', 'This reader is closed');
    const process = await open();
    return new Promise((resolve, reject) => {
      questions.push({ contents, resolve, reject });
      process.stdin?.write(line);
    });
  };

  return {
    async info(id, suffix = undefined) {
      return (await ask(`info ${id}${suffix ?? ''}\n`, false))?.info ?? null;
    },
    async read(id) {
      const answer = await ask(`contents ${id}\n`, true);
      return answer === null ? null : { type: answer.info.type, bytes: answer.bytes };
    },
    close() {
      closed = true;
      if (running === null) return;
      running.then(
        (process) => process.kill(),
        () => undefined,
      );
    },
  };
}
