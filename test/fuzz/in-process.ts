/**
 * The parsers of files, fuzzed in this process: the tar of a layer (docs/bucket-layout.md), and an exported log.
 *
 * Invariants: a parser may refuse a file by its own error only, and reads the same however the bytes are cut.
 */
import { LayerFormatError, readTar } from '../../adapters/git/layers/layer-tar.ts';
import { digest } from '../../adapters/node/digest.ts';
import { fileLines } from '../../adapters/node/file-lines.ts';
import { LOG_FILE_LINE_BYTES_MAX } from '../../core/kernel/limits.ts';
import {
  eventLine,
  firstDigest,
  LogFileError,
  LogFileReader,
  nextDigest,
} from '../../core/use-cases/log-files/log-file.ts';
import { exportText, fillOddLog } from '../support/log-files.ts';
import { createMemoryEventStore } from '../support/memory/event-store.ts';
import type { Dice } from '../support/seeded.ts';
import { mutateBytes } from './mutations.ts';

const BLOCK_BYTES = 512;
const SIZE_FIELD = { start: 124, end: 136 };
const SIZES: readonly string[] = ['00000000000', '77777777777', '-0000000001', '0x000000010', ' 0000000010', '', '9'];

export interface FileSamples {
  /** Lines of an export, without their ends. */
  readonly log: readonly string[];
}

export async function fileSamples(): Promise<FileSamples> {
  const events = createMemoryEventStore();
  await fillOddLog(events, 12);
  return { log: (await exportText(events)).trimEnd().split('\n') };
}

/** Reads a changed file; throws what the parser must not throw. */
export async function fileInput(dice: Dice, samples: FileSamples): Promise<void> {
  await (dice.chance(0.5) ? readChangedTar(dice) : readChangedLog(dice, samples));
}

async function readChangedTar(dice: Dice): Promise<void> {
  const names = ['objects/pack/pack-a.pack', 'objects/pack/pack-a.idx', 'updates', 'layer.json', '', '../x', '/etc/x'];
  const entries = Array.from({ length: 1 + dice.below(5) }, () => entryBytes(dice, dice.pick(names)));
  const tar = Buffer.concat([...entries, Buffer.alloc(2 * BLOCK_BYTES)]);
  const changed = dice.chance(0.5) ? mutateBytes(dice, tar) : tar;
  const [whole, cut] = [await partsOf([changed]), await partsOf(cutUp(dice, changed))];
  if (whole !== cut) throw new Error(`A tar reads otherwise when it is cut: ${whole} and ${cut}`);
}

function entryBytes(dice: Dice, name: string): Buffer {
  const content = Buffer.alloc(dice.pick([0, 1, 511, 512, 513, 3_000]), 1 + dice.below(255));
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(name.padEnd(1, '\x01'), 0, 100, 'latin1');
  const size = dice.chance(0.8) ? content.length.toString(8).padStart(11, '0') : dice.pick(SIZES);
  header.write(size, SIZE_FIELD.start, SIZE_FIELD.end - SIZE_FIELD.start, 'latin1');
  return Buffer.concat([header, content, Buffer.alloc((BLOCK_BYTES - (content.length % BLOCK_BYTES)) % BLOCK_BYTES)]);
}

/** Returns the names and sizes of a tar's entries; or the text of its refusal. */
async function partsOf(chunks: readonly Uint8Array[]): Promise<string> {
  const found: [name: string, bytes: number][] = [];
  const given = async function* (): AsyncGenerator<Uint8Array> {
    yield* chunks;
  };
  try {
    for await (const part of readTar(given())) {
      if ('entry' in part) found.push([part.entry, 0]);
      const last = found.at(-1);
      if (last !== undefined && 'bytes' in part) last[1] += part.bytes.length;
    }
  } catch (error) {
    if (!(error instanceof LayerFormatError)) throw error;
    return `${JSON.stringify(found)} ${error.message}`;
  }
  return JSON.stringify(found);
}

async function readChangedLog(dice: Dice, { log }: FileSamples): Promise<void> {
  const lines = [...log];
  for (let rounds = dice.below(3); rounds > 0; rounds -= 1) {
    const at = dice.below(lines.length);
    const line = Buffer.from(lines[at] ?? '');
    if (dice.chance(0.2)) lines.splice(at, 1);
    else lines[at] = mutateBytes(dice, line).toString('utf8').replaceAll('\n', '');
  }
  // Digests that follow from the lines let the changes reach the parser of events.
  const text = `${(dice.chance(0.5) ? withDigests(lines) : lines).join('\n')}\n`;
  const bytes = dice.chance(0.3) ? mutateBytes(dice, Buffer.from(text)) : Buffer.from(text);
  const reader = new LogFileReader(digest);
  const given = async function* (): AsyncGenerator<Uint8Array> {
    yield* cutUp(dice, bytes);
  };
  try {
    for await (const line of fileLines(given(), LOG_FILE_LINE_BYTES_MAX)) reader.read(line);
    reader.finish();
  } catch (error) {
    if (!(error instanceof LogFileError)) throw error;
  }
}

function withDigests(lines: readonly string[]): readonly string[] {
  let last = firstDigest(digest, 2);
  return lines.map((line) => {
    const [, text] = /^\{"digest":"[^"]*","event":(.*)\}$/s.exec(line) ?? [];
    if (text === undefined) return line;
    last = nextDigest(digest, last, text);
    return eventLine(last, text);
  });
}

function cutUp(dice: Dice, bytes: Buffer): readonly Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const part = bytes.subarray(at, at + 1 + dice.below(dice.chance(0.5) ? 20 : 2_000));
    parts.push(part);
    at += part.length;
  }
  return parts;
}
