/** Parses a Dockerfile, as far as this project's needs it: joined lines, COPY, ENV and the JSON forms. */

interface Copy {
  readonly sources: readonly string[];
  readonly target: string;
}

/** The last stage, which is the image. */
export interface Dockerfile {
  /** What is copied from the tree, in order. */
  readonly copies: readonly Copy[];
  /** What is copied from an earlier stage. */
  readonly made: readonly (Copy & { readonly stage: string })[];
  /** What any stage copies from the tree. */
  readonly context: readonly string[];
  /** The commands of the earlier stages. */
  readonly preparation: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly runs: readonly string[];
  readonly user: string | null;
  readonly command: readonly string[];
  readonly healthCheck: readonly string[];
}

/** Throws for an instruction that it does not know, so that it skips none. */
export function parseDockerfile(text: string): Dockerfile {
  const lines = text
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n');
  let copies: Copy[] = [];
  const made: (Copy & { readonly stage: string })[] = [];
  const context: string[] = [];
  const preparation: string[] = [];
  const env: Record<string, string> = {};
  let runs: string[] = [];
  let user: string | null = null;
  let command: readonly string[] = [];
  let healthCheck: readonly string[] = [];
  for (const line of lines.filter((candidate) => candidate.trim() !== '')) {
    const [, instruction = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    switch (instruction) {
      case 'FROM':
        preparation.push(...runs);
        [copies, runs] = [[], []];
        break;
      case 'WORKDIR':
      case 'EXPOSE':
        break;
      case 'RUN':
        runs.push(rest);
        break;
      case 'COPY': {
        const [, stage, names = ''] = /^(?:--from=(\S+)\s+)?(.*)$/.exec(rest) ?? [];
        const paths = names.split(/\s+/);
        const copy = { sources: paths.slice(0, -1), target: paths.at(-1) ?? '' };
        if (stage === undefined) {
          copies.push(copy);
          context.push(...copy.sources.filter((source) => !context.includes(source)));
        } else {
          made.push({ ...copy, stage });
        }
        break;
      }
      case 'ENV':
        for (const [, name = '', value = ''] of rest.matchAll(/(\w+)=(\S+)/g)) env[name] = value;
        break;
      case 'USER':
        user = rest;
        break;
      case 'HEALTHCHECK':
        healthCheck = words(rest.slice(rest.indexOf('CMD') + 'CMD'.length));
        break;
      case 'CMD':
        command = words(rest);
        break;
      default:
        throw new TypeError(`Unknown instruction: ${line}`);
    }
  }
  return { copies, made, context, preparation, env, runs, user, command, healthCheck };
}

function words(json: string): readonly string[] {
  const parsed: unknown = JSON.parse(json);
  if (!Array.isArray(parsed)) throw new TypeError(`Not in JSON form: ${json}`);
  return parsed.map(String);
}
