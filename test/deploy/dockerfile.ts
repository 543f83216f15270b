/** Parses a Dockerfile, as far as this project's needs it: joined lines, COPY, ENV and the JSON forms. */

export interface Dockerfile {
  /** What is copied from the tree, in order. */
  readonly copies: readonly { readonly sources: readonly string[]; readonly target: string }[];
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
  const copies: { sources: readonly string[]; target: string }[] = [];
  const env: Record<string, string> = {};
  const runs: string[] = [];
  let user: string | null = null;
  let command: readonly string[] = [];
  let healthCheck: readonly string[] = [];
  for (const line of lines.filter((candidate) => candidate.trim() !== '')) {
    const [, instruction = '', rest = ''] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    switch (instruction) {
      case 'FROM':
      case 'WORKDIR':
      case 'EXPOSE':
        break;
      case 'RUN':
        runs.push(rest);
        break;
      case 'COPY': {
        const names = rest.split(/\s+/);
        copies.push({ sources: names.slice(0, -1), target: names.at(-1) ?? '' });
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
  return { copies, env, runs, user, command, healthCheck };
}

function words(json: string): readonly string[] {
  const parsed: unknown = JSON.parse(json);
  if (!Array.isArray(parsed)) throw new TypeError(`Not in JSON form: ${json}`);
  return parsed.map(String);
}
