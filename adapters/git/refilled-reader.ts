/**
 * A reader of a repository whose cached folder may be deleted while it is read, as anybody may delete the cache.
 *
 * Invariants: what fails over a folder that is not whole is done again once, over a folder that was filled again; an
 * answer of which something was sent already fails, but the next one does not.
 */
import type { ObjectReader, UploadPackOptions } from '../../core/ports/object-database.ts';
import type { CacheFolder } from './cache/cache-folder.ts';

export interface OpenedReader {
  readonly reader: ObjectReader;
  readonly folder: CacheFolder;
}

export interface RefilledReaderOptions {
  readonly open: () => Promise<OpenedReader>;
  /** Whether what failed in this folder may succeed in another: from then on `open` resolves with another one. */
  readonly isLost: (folder: CacheFolder, error: unknown) => Promise<boolean>;
}

export async function createRefilledReader(options: RefilledReaderOptions): Promise<ObjectReader> {
  const reopened = await createReopening(options);
  const { call, stream } = callsOf(reopened);
  return {
    lookup: (ids) => call((reader) => reader.lookup(ids)),
    startingWith: (digits, limit) => call((reader) => reader.startingWith(digits, limit)),
    tips: (ids) => call((reader) => reader.tips(ids)),
    commit: (id) => call((reader) => reader.commit(id)),
    commits: (ids) => call((reader) => reader.commits(ids)),
    commitSeconds: (ids) => call((reader) => reader.commitSeconds(ids)),
    tag: (id) => call((reader) => reader.tag(id)),
    tree: (id, page) => call((reader) => reader.tree(id, page)),
    entry: (tree, name) => call((reader) => reader.entry(tree, name)),
    blob: (id, range) => stream((reader) => reader.blob(id, range)),
    walk: (walked) => stream((reader) => reader.walk(walked)),
    count: (tip) => call((reader) => reader.count(tip)),
    isAncestor: (ancestor, descendant) => call((reader) => reader.isAncestor(ancestor, descendant)),
    history: {
      diff: (from, to, bounded) => stream(({ history }) => history.diff(from, to, bounded)),
      diffOfBlobs: (from, to, bounded) => stream(({ history }) => history.diffOfBlobs(from, to, bounded)),
      findCommits: (tip, filter, bounded) => stream(({ history }) => history.findCommits(tip, filter, bounded)),
      changesBelow: (tip, exclude, paths, bounded) =>
        stream(({ history }) => history.changesBelow(tip, exclude, paths, bounded)),
      blame: (tip, path, lines, bounded) => stream(({ history }) => history.blame(tip, path, lines, bounded)),
      links: (include, exclude, bounded) => stream(({ history }) => history.links(include, exclude, bounded)),
      commitsBetween: (exclude, tip, page, bounded) =>
        call(({ history }) => history.commitsBetween(exclude, tip, page, bounded)),
      aheadBehind: (a, b, bounded) => call(({ history }) => history.aheadBehind(a, b, bounded)),
      mergeBase: (a, b, bounded) => call(({ history }) => history.mergeBase(a, b, bounded)),
    },
    search: {
      files: (tree, options, bounded) => stream(({ search }) => search.files(tree, options, bounded)),
      lines: (root, wanted, bounded) => stream(({ search }) => search.lines(root, wanted, bounded)),
      isBinary: (blob, bounded) => call(({ search }) => search.isBinary(blob, bounded)),
      regexFault: (regex, bounded) => call(({ search }) => search.regexFault(regex, bounded)),
    },
    reachable: (ids, tips, tipsKey) => call((reader) => reader.reachable(ids, tips, tipsKey)),
    uploadPack: (uploaded) => uploadTwice(stream, uploaded),
    commitText: (wanted) => stream((reader) => reader.commitText(wanted)),
    archiveReadsRefs: (commit, signal) => call((reader) => reader.archiveReadsRefs(commit, signal)),
    archive: (archived) => stream((reader) => reader.archive(archived)),
    close: () => reopened.close(),
  };
}

interface Reopening {
  current(): OpenedReader;
  /** Resolves with the reader for the second attempt; rejects with the error when there is none. */
  after(failed: OpenedReader, error: unknown): Promise<OpenedReader>;
  close(): void;
}

async function createReopening({ open, isLost }: RefilledReaderOptions): Promise<Reopening> {
  let current = await open();
  let reopening: Promise<OpenedReader> | null = null;
  let closed = false;
  // Earlier ones stay open to the end: calls that began over them may still go on.
  const opened = [current];
  const reopen = async (): Promise<OpenedReader> => {
    try {
      current = await open();
      opened.push(current);
      if (closed) current.reader.close();
      return current;
    } finally {
      reopening = null;
    }
  };
  return {
    current: () => current,
    async after(failed, error) {
      if (closed || !(await isLost(failed.folder, error))) throw error;
      if (current !== failed) return current;
      reopening ??= reopen();
      return reopening;
    },
    close: () => {
      closed = true;
      for (const { reader } of opened) reader.close();
    },
  };
}

interface Calls {
  call<Result>(work: (reader: ObjectReader) => Promise<Result>): Promise<Result>;
  stream<Item>(work: (reader: ObjectReader) => AsyncIterable<Item>): AsyncGenerator<Item>;
}

function callsOf(reopened: Reopening): Calls {
  return {
    async call(work) {
      const used = reopened.current();
      try {
        return await work(used.reader);
      } catch (error) {
        const { reader } = await reopened.after(used, error);
        return work(reader);
      }
    },
    async *stream(work) {
      const used = reopened.current();
      let second: OpenedReader;
      let sent = false;
      try {
        for await (const item of work(used.reader)) {
          sent = true;
          yield item;
        }
        return;
      } catch (error) {
        second = await reopened.after(used, error);
        if (sent) throw error;
      }
      yield* work(second.reader);
    },
  };
}

/** The request is read once, so that it can be sent twice. */
async function* uploadTwice(stream: Calls['stream'], options: UploadPackOptions): AsyncGenerator<Uint8Array> {
  const request = await Array.fromAsync(options.request);
  yield* stream((reader) => reader.uploadPack({ ...options, request: chunksOf(request) }));
}

async function* chunksOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}
