/** The three repositories of the demo: a library with releases, a handbook, and somebody's settings. */
import { ADA, GRACE, History, LINUS } from './history.ts';

interface Part {
  readonly name: string;
  readonly what: string;
  readonly code: string;
  readonly check: string;
}

const PARTS: readonly Part[] = [
  {
    name: 'clamp',
    what: 'keeps a number between two others',
    code: 'export function clamp(value: number, low: number, high: number): number {\n  return Math.min(high, Math.max(low, value));\n}\n',
    check: 'assert.equal(clamp(11, 0, 10), 10);\n',
  },
  {
    name: 'ease',
    what: 'slows a movement down at both ends',
    code: "import { clamp } from './clamp.ts';\n\n/** `part` of a movement from 0 to 1. */\nexport function ease(part: number): number {\n  const t = clamp(part, 0, 1);\n  return t * t * (3 - 2 * t);\n}\n",
    check: 'assert.equal(ease(0.5), 0.5);\n',
  },
  {
    name: 'sunrise',
    what: 'says when the sun rises',
    code: 'const DEGREE = Math.PI / 180;\n\n/** Hours after midnight, at a latitude and a day of the year. */\nexport function sunrise(latitude: number, day: number): number {\n  const tilt = -23.44 * DEGREE * Math.cos(((day + 10) / 365) * 2 * Math.PI);\n  const cosine = -Math.tan(latitude * DEGREE) * Math.tan(tilt);\n  if (cosine <= -1) return 0;\n  return cosine >= 1 ? Number.NaN : 12 - (Math.acos(cosine) / DEGREE / 360) * 24;\n}\n',
    check: 'assert.ok(Math.abs(sunrise(0, 80) - 6) < 0.1);\n',
  },
  {
    name: 'glow',
    what: 'says how bright the lantern is at an hour',
    code: "import { ease } from './ease.ts';\n\nexport interface Evening {\n  readonly from: number;\n  readonly to: number;\n}\n\nexport function glow(hour: number, { from, to }: Evening): number {\n  const span = 0.5;\n  return ease((hour - from) / span) * ease((to - hour) / span);\n}\n",
    check: 'assert.equal(glow(12, { from: 18, to: 23 }), 0);\n',
  },
  {
    name: 'colour',
    what: 'makes a colour of a temperature',
    code: "import { clamp } from './clamp.ts';\n\n/** Tanner Helland's fit, from 1,000 to 6,600 kelvin. */\nexport function colour(kelvin: number): readonly [red: number, green: number, blue: number] {\n  const t = kelvin / 100;\n  const green = 99.47 * Math.log(t) - 161.12;\n  const blue = t <= 19 ? 0 : 138.52 * Math.log(t - 10) - 305.04;\n  return [255, clamp(Math.round(green), 0, 255), clamp(Math.round(blue), 0, 255)];\n}\n",
    check: 'assert.equal(colour(1_500)[2], 0);\n',
  },
  {
    name: 'schedule',
    what: 'plans the evenings of a week',
    code: "import type { Evening } from './glow.ts';\nimport { sunrise } from './sunrise.ts';\n\nexport function schedule(latitude: number, day: number): readonly Evening[] {\n  return Array.from({ length: 7 }, (_, offset) => {\n    const rise = sunrise(latitude, day + offset);\n    return { from: 24 - rise, to: 23.5 };\n  });\n}\n",
    check: 'assert.equal(schedule(52.5, 1).length, 7);\n',
  },
];

const README = `# lantern

A small library that knows when to light a lantern, how bright, and in which colour.

\`\`\`ts
import { glow, schedule } from 'lantern';

const [tonight] = schedule(52.5, 320);
console.log(glow(21, tonight));
\`\`\`

| function | what it does |
| --- | --- |
${PARTS.map(({ name, what }) => `| \`${name}\` | ${what} |`).join('\n')}

- [x] No dependencies
- [x] Types without a build
- [ ] A lantern that is a real lantern

See [the contribution guide](guide/contributing.md).
`;

const MARK = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48"><path fill="#96390f" d="M18 6h12v6l6 8v18H12V20l6-8z"/><circle cx="24" cy="28" r="6" fill="#f9ede4"/></svg>
`;

/** A library with four releases, merged topics, a topic that was forced, and one that went away. */
export function lantern(): History {
  const history = new History();
  const begin = (files: Readonly<Record<string, string>>, message: string): void => {
    history.commit({ branch: 'main', author: ADA, message, files });
  };
  begin({ 'README.md': '# lantern\n' }, 'Begin');
  begin({ LICENSE: 'MIT License\n\nCopyright (c) Ada Lovelace\n' }, 'Choose the MIT license');
  begin({ 'package.json': packageJson('0.0.0'), '.gitignore': 'node_modules\n' }, 'Name the package');
  history.stage('begun', 'main');
  for (const [index, { name, what, code, check }] of PARTS.entries()) {
    const topic = `add-${name}`;
    const author = [ADA, GRACE, LINUS][index % 3] ?? ADA;
    const source = `src/${name}.ts`;
    const test = `test/${name}.test.ts`;
    const head = `import assert from 'node:assert/strict';\nimport { ${name} } from '../${source}';\n\n`;
    history.commit({ branch: topic, from: 'main', author, message: `Add ${name}`, files: { [source]: code } });
    history.commit({
      ...{ branch: topic, author, files: { [test]: head + check } },
      message: `Test ${name} at its ends\n\nIt ${what}; the ends are where it went wrong before.`,
    });
    if (index % 2 === 1) {
      const documented = `/** ${what.charAt(0).toUpperCase()}${what.slice(1)}. */\n${code}`;
      const message = `Say what ${name} does`;
      history.commit({ branch: topic, author: GRACE, message, files: { [source]: documented } });
    }
    const message = `Merge ${topic}`;
    history.commit({ branch: 'main', author: ADA, message, merges: topic, files: merged(index) });
    const version = `0.${index + 1}.0`;
    if (index % 2 === 0) {
      const release = { 'package.json': packageJson(version), 'CHANGELOG.md': changelog(index) };
      history.commit({ branch: 'main', author: ADA, message: `Release ${version}`, files: release });
      history.tag(`v${version}`, 'main', `lantern ${version}`);
    }
    history.stage(`after-${name}`, 'main');
  }
  begin({ 'README.md': README, 'guide/mark.svg': MARK }, 'Show the functions in the README');
  begin({ 'guide/contributing.md': '# Contributing\n\nSmall commits, tests first.\n' }, 'Say how to contribute');
  const moonlight = { 'src/moon.ts': 'export const moon = (day: number): number => (day % 29.53) / 29.53;\n' };
  history.commit({ branch: 'moonlight', from: 'main', author: LINUS, message: 'Try the moon', files: moonlight });
  history.stage('moonlight-first', 'moonlight');
  history.commit({
    branch: 'moonlight-again',
    from: 'main',
    author: LINUS,
    message: 'Know the moon',
    files: moonlight,
  });
  const phases = { 'test/moon.test.ts': "import assert from 'node:assert/strict';\n" };
  history.commit({ branch: 'moonlight-again', author: LINUS, message: 'Test the moon by its phases', files: phases });
  begin({ '.ci/run': '#!/bin/sh\nnode --test\n' }, 'Test every push');
  return history;
}

function merged(index: number): Readonly<Record<string, string>> {
  const shown = PARTS.slice(0, index + 1);
  const files = Object.fromEntries(shown.slice(-1).map(({ name, code }) => [`src/${name}.ts`, code]));
  const tests = shown.slice(-1).map(({ name, check }): [string, string] => {
    const head = `import assert from 'node:assert/strict';\nimport { ${name} } from '../src/${name}.ts';\n\n`;
    return [`test/${name}.test.ts`, head + check];
  });
  const all = shown.map(({ name }) => `export * from './${name}.ts';\n`).join('');
  return { ...files, ...Object.fromEntries(tests), 'src/index.ts': all };
}

function packageJson(version: string): string {
  return `${JSON.stringify({ name: 'lantern', version, type: 'module', exports: './src/index.ts' }, null, 2)}\n`;
}

function changelog(index: number): string {
  const shown = PARTS.slice(0, index + 1).toReversed();
  return `# Changelog\n\n${shown.map(({ name, what }) => `- \`${name}\` ${what}.`).join('\n')}\n`;
}

const CHAPTERS = [
  ['welcome', 'Welcome', 'Read this on your first day. Ask about whatever is missing, then add it.'],
  ['writing', 'How we write', 'Short sentences. The reader is in a hurry and knows less than you think.'],
  ['reviews', 'Reviews', 'Review within a day. Say what you liked as well.'],
  ['on-call', 'On call', 'One week at a time. Whoever is woken at night sleeps in.'],
  ['decisions', 'Decisions', 'A decision is a page: what, why, and what it would take to change it.'],
  ['leaving', 'Leaving', 'Hand over what only you know. Thank you for everything.'],
] as const;

/** Texts by several people, on one branch. */
export function handbook(): History {
  const history = new History(20);
  const table = (count: number): string =>
    `# Handbook\n\n${CHAPTERS.slice(0, count)
      .map(([file, title], index) => `${index + 1}. [${title}](chapters/${file}.md)`)
      .join('\n')}\n`;
  history.commit({ branch: 'main', author: GRACE, message: 'Open the handbook', files: { 'README.md': table(0) } });
  for (const [index, [file, title, text]] of CHAPTERS.entries()) {
    const author = [GRACE, ADA, LINUS][index % 3] ?? GRACE;
    const path = `chapters/${file}.md`;
    const first = { [path]: `# ${title}\n\n${text}\n`, 'README.md': table(index + 1) };
    history.commit({ branch: 'main', author, message: `Write about ${title.toLowerCase()}`, files: first });
    const more = { [path]: `# ${title}\n\n> ${text}\n\nChanged after the last meeting.\n` };
    history.commit({ branch: 'main', author: GRACE, message: `Correct ${title.toLowerCase()}`, files: more });
  }
  return history;
}

/** A small repository of one person. */
export function dotfiles(): History {
  const history = new History(45);
  const put = (message: string, files: Readonly<Record<string, string | null>>): void => {
    history.commit({ branch: 'master', author: ADA, message, files });
  };
  put('Keep my settings', { '.vimrc': 'set number\nset undofile\n' });
  put('Add git', { '.gitconfig': '[pull]\n\trebase = true\n[init]\n\tdefaultBranch = main\n' });
  put('Colours', { '.vimrc': 'set number\nset undofile\ncolorscheme habamax\n' });
  put('Not vim any more', { '.vimrc': null, '.config/helix/config.toml': 'theme = "paper"\n' });
  return history;
}
