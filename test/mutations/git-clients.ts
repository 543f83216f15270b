/**
 * Guards of what Git's clients may send and are told: ends of a fetch, slow readers and senders, reports of refused
 * pushes, addresses, and commits in other encodings.
 */
import type { Mutation } from './mutation.ts';

const FETCH_ENDS = 'test/scenarios/fetch-ends.test.ts';
const SLOW_READERS = 'test/security/slow-readers.test.ts';
const SLOW_PUSHES = 'test/apps/git-http/slow-pushes.test.ts';
const COMMAND_LIST = 'test/core/git/wire/command-list.test.ts';
const REFUSED_WHOLE = 'test/scenarios/push-refused-whole.test.ts';
const ABSOLUTE_FORM = 'test/scenarios/absolute-form.test.ts';
const TARGET = 'test/apps/git-http/target.test.ts';

const OF_FETCHES: readonly Mutation[] = [
  {
    without: 'a look at whether git itself ended a fetch for a reason of its client',
    file: 'adapters/git/answers/fetch-ends.ts',
    text: "if (killed !== 'no' || code !== DIED) return null;",
    by: '',
    test: FETCH_ENDS,
    red: 'because git names a reason of the client among other lines',
  },
  {
    without: 'whole lines for the reasons of a client',
    file: 'adapters/git/answers/fetch-ends.ts',
    text: '/^fatal: no commits selected',
    by: '/fatal: no commits selected',
    test: FETCH_ENDS,
    red: 'because git quotes one',
  },
  {
    without: 'a look at whether what git starts took too long',
    file: 'adapters/git/process/git-commands.ts',
    text: '|^error: \\S+ died of signal 24$',
    by: '',
    test: FETCH_ENDS,
    red: 'because what git starts takes too long',
  },
  {
    without: 'a look at what packs says in the side band',
    file: 'adapters/git/answers/upload-pack.ts',
    text: 'saidInOutput: () => messages.text(),',
    by: '',
    test: FETCH_ENDS,
    red: 'because what packs gets no more memory',
  },
  {
    without: 'a look at the band of a message',
    file: 'adapters/git/answers/pack-messages.ts',
    text: 'if (this.#band === MESSAGES_BAND) {',
    by: '{',
    test: 'test/adapters/git/answers/pack-messages.test.ts',
    red: 'is nothing that stands in a pack',
  },
];

const OF_SLOW_READERS: readonly Mutation[] = [
  {
    without: 'an end of their own for answers that find no slot for slow readers',
    file: 'adapters/git/process/process-runner.ts',
    text: "throw new ReaderTooSlow('Too many",
    by: "throw new ProcessStartError('Too many",
    test: 'test/adapters/git/answers/slow-readers.test.ts',
    red: "ends as its reader's doing",
  },
  {
    without: 'a look at whether git waited for its slow reader until its time was up',
    file: 'adapters/git/process/git-commands.ts',
    text: 'command.pacing?.isSlow() === true',
    by: 'command.pacing === null',
    test: 'test/adapters/git/process/git-commands.test.ts',
    red: 'has waited for its reader',
  },
  {
    without: 'the ERR for a fetch that finds no room beside slow readers',
    file: 'apps/git-http/fetch.ts',
    text: 'if (error instanceof ReaderTooSlow) {',
    by: 'if (error === null) {',
    test: SLOW_READERS,
    red: 'is told to git before its first bytes',
  },
  ...(
    [
      ['git', 'apps/git-http/faults.ts', 'breaks its connection after them, and is no fault: a fetch'],
      ['REST', 'apps/api/faults.ts', 'is refused before its first bytes: a large file'],
      ['the website', 'apps/website/faults.ts', 'is refused before its first bytes: a file of the website'],
    ] as const
  ).map(
    ([surface, file, red]): Mutation => ({
      without: `an end of their own for slow readers of ${surface}`,
      file,
      text: 'if (error instanceof ReaderTooSlow) {',
      by: 'if (error === null) {',
      test: SLOW_READERS,
      red,
    }),
  ),
];

const OF_PUSHES: readonly Mutation[] = [
  {
    without: 'a limit on slow pushes of an account or a network',
    file: 'apps/front-door/slow-pushes.ts',
    text: 'group.size <= crowd.pushesMax',
    by: 'group.size <= 1_000',
    test: SLOW_PUSHES,
    red: 'of an account are as many as its limit',
  },
  {
    without: 'a limit on slow pushes of a wide network',
    file: 'apps/front-door/slow-pushes.ts',
    text: '...(isIpv6(address) ? [ofNetwork(wideNetworkOf(address), SLOW_PUSHES_OF_WIDE_NETWORK_MAX)] : []),',
    by: '',
    test: SLOW_PUSHES,
    red: 'of the networks of a /48 of IPv6',
  },
  {
    without: 'a search for the slowest of too many pushes',
    file: 'apps/front-door/slow-pushes.ts',
    text: 'push.bytesPerSecond <= slowest.bytesPerSecond ? push : slowest',
    by: 'push === slowest ? slowest : push',
    test: SLOW_PUSHES,
    red: 'that are too many lose the slowest',
  },
  {
    without: 'a look at whether a slow push was cut before its end is logged as an outage',
    file: 'apps/git-http/push.ts',
    text: '!signal.aborted && !(error instanceof PushCut)',
    by: '!signal.aborted',
    test: SLOW_PUSHES,
    red: 'is taken at the least rate, and told below it',
  },
  {
    without: 'the names of the commands that were read of a refused list',
    file: 'core/git/wire/command-list.ts',
    text: 'names = namesOf(draft)',
    by: "names: CommandListRefusal['names'] = []",
    test: COMMAND_LIST,
    red: 'names the commands that were read, for the report',
  },
  {
    without: 'the name of the command whose capabilities are refused',
    file: 'core/git/wire/command-list.ts',
    text: 'readCommand(draft, head, command.subarray(HEAD_BYTES));\n      return refusal;',
    by: 'return refusal;',
    test: COMMAND_LIST,
    red: 'names the commands that were read, for the report',
  },
  {
    without: 'a line of the report for each command of a push that is refused as a whole',
    file: 'apps/git-http/push.ts',
    text: 'names.map((name): RefReport => ({ name, refused: NOT_UNPACKED }))',
    by: '[] as RefReport[]',
    test: REFUSED_WHOLE,
    red: 'for its options says so for each ref',
  },
  {
    without: 'a line of the report for bad names in a push that is refused as a whole',
    file: 'apps/git-http/push.ts',
    text: '...refusedCommands.map(({ name, detail }): RefReport => ({ name, refused: detail })),',
    by: '',
    test: REFUSED_WHOLE,
    red: 'also for one of a bad name',
  },
];

const OF_ADDRESSES: readonly Mutation[] = [
  {
    without: 'a refusal of absolute forms with the authority of others',
    file: 'apps/server/absolute-form.ts',
    text: 'if (!own.has(authority)) return false;',
    by: '',
    test: ABSOLUTE_FORM,
    red: 'is 421 for any other authority',
  },
  {
    without: 'the authority of an absolute form in place of Host',
    file: 'apps/server/absolute-form.ts',
    text: 'request.headers.host = authority;',
    by: '',
    test: ABSOLUTE_FORM,
    red: 'is judged by its authority',
  },
  {
    without: 'remotes at the address of the page',
    file: 'apps/git-http/target.ts',
    text: "path.startsWith('/r/') ? path.slice(2) : path",
    by: "path.startsWith('/r/') ? path.slice(2) : ''",
    test: TARGET,
    red: 'may be below the address of the page of the repository',
  },
  {
    without: 'a look at what lies below the address of a page',
    file: 'apps/git-http/routes.ts',
    text: '(serviceOf(named) !== null || QUERIED.has(named.path) || routesOf(named) !== NONE)',
    by: 'named.path !== null',
    test: TARGET,
    red: 'is for the website everywhere else',
  },
];

const OF_ENCODINGS: readonly Mutation[] = [
  {
    without: 'a commit that stays as it is for one bad byte',
    file: 'adapters/git/packs/shown-commit.ts',
    text: 'if (text.includes(REPLACEMENT)) return null;',
    by: '',
    test: 'test/adapters/git/packs/shown-commit.test.ts',
    red: 'are read as git shows them, whatever the bytes',
  },
  {
    without: 'the form of the bytes of an encoding of which the library takes more',
    file: 'adapters/git/packs/shown-commit.ts',
    text: 'if (form !== undefined && !hasForm(bytes, form)) return null;',
    by: '',
    test: 'test/adapters/git/packs/shown-commit.test.ts',
    red: 'are read as git shows them, whatever the bytes',
  },
];

export const GIT_CLIENT_MUTATIONS: readonly Mutation[] = [
  ...OF_FETCHES,
  ...OF_SLOW_READERS,
  ...OF_PUSHES,
  ...OF_ADDRESSES,
  ...OF_ENCODINGS,
];
