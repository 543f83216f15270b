/**
 * `strata completion`: scripts for shells, made from the definitions of the commands.
 *
 * Invariants: a script asks no service and starts no program, so that a key press costs nothing.
 */
import type { Context, Given, Run } from '../session/context.ts';
import type { CommandDefinition, OptionDefinition } from './definition.ts';

interface Word {
  readonly word: string;
  readonly summary: string;
}

/** What may follow the words of a command or group. */
interface Place {
  readonly path: string;
  readonly words: readonly Word[];
  readonly options: readonly OptionDefinition[];
}

export function completionOf(commands: readonly CommandDefinition[], globals: readonly OptionDefinition[]): Run {
  return async (context: Context, given: Given) => {
    const places = placesOf(commands, globals);
    const shell = given.argument('shell');
    const script = shell === 'bash' ? bash(places) : shell === 'zsh' ? zsh(places) : fish(places);
    context.terminal.out(script);
  };
}

function placesOf(commands: readonly CommandDefinition[], globals: readonly OptionDefinition[]): readonly Place[] {
  const groups = [...new Set(commands.flatMap(({ name }) => (name.includes(' ') ? [name.split(' ')[0] ?? ''] : [])))];
  const single = commands.filter(({ name }) => !name.includes(' '));
  const top: Word[] = [
    ...single.map(({ name, summary }) => ({ word: name, summary })),
    ...groups.map((word) => ({ word, summary: `${word} commands` })),
  ];
  return [
    { path: '', words: top, options: globals },
    ...groups.map((group) => ({
      path: group,
      words: commands
        .filter(({ name }) => name.startsWith(`${group} `))
        .map(({ name, summary }) => ({ word: name.slice(group.length + 1), summary })),
      options: globals,
    })),
    ...commands.map(({ name, options = [], arguments: given = [] }) => ({
      path: name,
      words: given.flatMap(({ choices = [] }) => choices.map((word) => ({ word, summary: word }))),
      options: [...options, ...globals],
    })),
  ];
}

/** The values that an option may have, by option, over all commands: those with the same name have the same choices. */
function choicesOf(places: readonly Place[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const option of places.flatMap(({ options }) => options)) {
    if ((option.kind === 'text' || option.kind === 'list') && option.choices !== undefined) {
      found.set(option.name, option.choices);
    }
  }
  return found;
}

/** Options whose next word is their value. */
function valued(places: readonly Place[]): readonly string[] {
  const names = places.flatMap(({ options }) =>
    options.flatMap(({ kind, name }) => (kind === 'flag' ? [] : [`--${name}`])),
  );
  return [...new Set(names)];
}

function bash(places: readonly Place[]): string {
  const cases = places.map(({ path, words, options }) => {
    const offered = [...words.map(({ word }) => word), ...options.map(({ name }) => `--${name}`), '--help'];
    return `    '${path}') offered='${offered.join(' ')}' ;;`;
  });
  const values = Array.from(choicesOf(places), ([name, list]) => `    --${name}) offered='${list.join(' ')}' ;;`);
  return `# bash completion of strata. Load it with: source <(strata completion bash)
_strata() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" place='' offered='' index word skip=''
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    if [[ -n $skip ]]; then skip=''; continue; fi
    case "$word" in
      ${valued(places).join('|')}) skip=1 ;;
      -*) ;;
      *) case "\${place:+$place }$word" in
        ${places
          .filter(({ path }) => path !== '')
          .map(({ path }) => `'${path}'`)
          .join('|')}) place="\${place:+$place }$word" ;;
      esac ;;
    esac
  done
  case "$before" in
${values.join('\n')}
    ${valued(places).join('|')}) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  if [[ -z $offered ]]; then
    case "$place" in
${cases.join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$offered" -- "$current"))
}
complete -F _strata strata
`;
}

/** A text between the single quotes of a shell, also where zsh reads a colon or a bracket. */
const quotable = (text: string): string => text.replaceAll(/['\\[\]:`$]/g, ' ');

function zsh(places: readonly Place[]): string {
  const cases = places.map(({ path, words, options }) => {
    const entries = [
      ...words.map(({ word, summary }) => `'${word}:${quotable(summary)}'`),
      ...options.map(({ name, description }) => `'--${name}:${quotable(description)}'`),
    ];
    return `    '${path}') offered=(${entries.join(' ')}) ;;`;
  });
  const values = Array.from(
    choicesOf(places),
    ([name, list]) => `    --${name}) compadd -- ${list.join(' ')}; return ;;`,
  );
  return `#compdef strata
# zsh completion of strata: strata completion zsh >"\${fpath[1]}/_strata"
_strata() {
  local place='' word skip='' index
  local -a offered
  for ((index = 2; index < CURRENT; index++)); do
    word="\${words[index]}"
    if [[ -n $skip ]]; then skip=''; continue; fi
    case "$word" in
      ${valued(places).join('|')}) skip=1 ;;
      -*) ;;
      *) case "\${place:+$place }$word" in
        ${places
          .filter(({ path }) => path !== '')
          .map(({ path }) => `'${path}'`)
          .join('|')}) place="\${place:+$place }$word" ;;
      esac ;;
    esac
  done
  case "\${words[CURRENT-1]}" in
${values.join('\n')}
    ${valued(places).join('|')}) _files; return ;;
  esac
  case "$place" in
${cases.join('\n')}
  esac
  _describe 'strata' offered
}
if [[ "\${funcstack[1]}" == _strata ]]; then _strata "$@"; else compdef _strata strata; fi
`;
}

function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, words, options }) => {
    const condition = `__strata_at '${path}'`;
    return [
      ...words.map(
        ({ word, summary }) => `complete -c strata -n "${condition}" -a '${word}' -d '${quotable(summary)}'`,
      ),
      ...options.map((option) => {
        const choices = option.kind !== 'flag' && 'choices' in option ? (option.choices ?? []) : [];
        const value = option.kind === 'flag' ? '' : choices.length > 0 ? ` -x -a '${choices.join(' ')}'` : ' -r';
        return `complete -c strata -n "${condition}" -l ${option.name}${value} -d '${quotable(option.description)}'`;
      }),
    ];
  });
  return `# fish completion of strata: strata completion fish >~/.config/fish/completions/strata.fish
complete -c strata -f
function __strata_at
  set -l place
  for word in (commandline -opc)[2..-1]
    string match -q -- '-*' $word; and continue
    set -l next (string join ' ' $place $word)
    contains -- "$next" ${places
      .filter(({ path }) => path !== '')
      .map(({ path }) => `'${path}'`)
      .join(' ')}; and set place $next
  end
  test "$place" = "$argv[1]"
end
${lines.join('\n')}
`;
}
