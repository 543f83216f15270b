/**
 * `strata-admin log export`: writes the whole log to a file or to standard output.
 *
 * Invariants: the file gets its name only when it is complete and synced. Until then it is `<file>.partial`, which
 * the next export continues after its last whole line.
 */
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileLines } from '../../adapters/node/file-lines.ts';
import { LOG_FILE_LINE_BYTES_MAX } from '../../core/kernel/limits.ts';
import type { Failpoint } from '../../core/ports/failpoints.ts';
import { type ExportPlace, exportLog, type LogSource, placeAfter } from '../../core/use-cases/log-files/export-log.ts';
import {
  type FileEvent,
  LOG_FILE_VERSION,
  LogFileError,
  LogFileReader,
} from '../../core/use-cases/log-files/log-file.ts';

export interface ExportReport {
  /** Null for standard output. */
  readonly file: string | null;
  readonly events: number;
  readonly digest: string;
  /** The number of events that an earlier, interrupted export had written. */
  readonly resumed: number;
}

/** Exports to a new file. Throws if the file exists, or if the partial file is of another log. */
export async function exportLogToFile(
  source: LogSource & { readonly failpoint: Failpoint },
  file: string,
): Promise<ExportReport> {
  if (await exists(file)) throw new Error(`${file} exists: an export never replaces one`);
  const partial = `${file}.partial`;
  // Only the owner may read the file: it holds the events of every account.
  const handle = await open(partial, (await exists(partial)) ? 'r+' : 'wx+', 0o600);
  try {
    const written = await wholeLines(partial, source);
    const from = written.last === null ? null : await placeAfter(source, written.last, written.events);
    const place = await writeFrom(handle, source, from, from === null ? 0 : written.sizeBytes);
    await handle.sync();
    await rename(partial, file);
    await syncFolder(path.dirname(file));
    return { file, events: place.events, digest: place.digest, resumed: from === null ? 0 : written.events };
  } finally {
    await handle.close();
  }
}

async function writeFrom(
  handle: FileHandle,
  source: LogSource & { readonly failpoint: Failpoint },
  from: ExportPlace | null,
  offset: number,
): Promise<ExportPlace> {
  await handle.truncate(offset);
  let end = offset;
  let last = from;
  for await (const { text, place } of exportLog(source, from)) {
    const bytes = Buffer.from(text, 'utf8');
    for (let start = 0; start < bytes.length; ) {
      const { bytesWritten } = await handle.write(bytes, start, bytes.length - start, end + start);
      start += bytesWritten;
    }
    end += bytes.length;
    last = place;
    await source.failpoint('log-export-written');
  }
  if (last === null) throw new TypeError('An export writes a header at least');
  return last;
}

interface WrittenBefore {
  readonly last: FileEvent | null;
  readonly events: number;
  /** The bytes up to the end of the last event's line. */
  readonly sizeBytes: number;
}

/** Reads the valid lines that an interrupted export has written. */
async function wholeLines(partial: string, { digest }: LogSource): Promise<WrittenBefore> {
  const reader = new LogFileReader(digest);
  let written: WrittenBefore = { last: null, events: 0, sizeBytes: 0 };
  let sizeBytes = 0;
  try {
    for await (const line of fileLines(createReadStream(partial), LOG_FILE_LINE_BYTES_MAX)) {
      sizeBytes += line.bytes.length + 1;
      const read = reader.read(line);
      // A program with an older file format began the file: the export starts again.
      if (reader.version !== LOG_FILE_VERSION) break;
      if (read.kind === 'event') written = { last: read.event, events: written.events + 1, sizeBytes };
    }
  } catch (error) {
    // The crash of the process or of the machine tore this line: the export continues before it.
    if (!(error instanceof LogFileError)) throw error;
  }
  return written;
}

/** Exports to a stream, which the caller ends. Rejects if the reader closes it. */
export async function exportLogToStream(source: LogSource, output: Writable): Promise<ExportReport> {
  const places: ExportPlace[] = [];
  await pipeline(
    async function* () {
      for await (const { text, place } of exportLog(source, null)) {
        places[0] = place;
        yield text;
      }
    },
    output,
    { end: false },
  );
  const [last] = places;
  if (last === undefined) throw new TypeError('An export writes a header at least');
  return { file: null, events: last.events, digest: last.digest, resumed: 0 };
}

export async function exists(file: string): Promise<boolean> {
  try {
    await stat(file);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
    throw error;
  }
}

/** Syncs the folder, so that the file's new name survives a power failure. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
