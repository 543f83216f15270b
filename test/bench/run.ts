/**
 * One run: the chosen scenarios, one after the other, on the running sides.
 *
 * Invariants: a scenario that fails is reported as failed and does not affect the others.
 */
import { createDurabilityProbe } from './durability.ts';
import { describeMachine, describeVersions } from './environment.ts';
import type { BenchOptions } from './options.ts';
import type { BenchResult, ChangeResult, ClientResult, Fault, MemoryResult, ScenarioResult } from './results.ts';
import { measureScenario } from './rounds.ts';
import { MEMORY, REAL_CLIENT, SCENARIOS, WRITING } from './scenarios/catalogue.ts';
import { CLIENT_COMMANDS } from './scenarios/client-commands.ts';
import { atClientCounts } from './scenarios/client-counts.ts';
import { measureMemory, prepareLargeFolder } from './scenarios/memory.ts';
import { measureRealClient } from './scenarios/real-client.ts';
import type { BenchContext } from './scenarios/scenario.ts';
import { measureWholeChanges } from './scenarios/whole-changes.ts';
import { contextOfTree, doorsOf, WRITTEN_TREES, writingScenarios } from './scenarios/writing.ts';
import type { HttpBackendPrograms } from './sides/http-backend.ts';
import type { StartedSides } from './sides/start.ts';

export interface RunInput {
  readonly options: BenchOptions;
  readonly context: BenchContext;
  readonly sides: StartedSides;
  readonly programs: HttpBackendPrograms | null;
  /** Prints progress for the person who waits. */
  readonly say: (text: string) => void;
}

export async function runBench(input: RunInput): Promise<BenchResult> {
  const { options, context, sides, programs } = input;
  const scenarios: ScenarioResult[] = [];
  const changes: ChangeResult[] = [];
  const clients: ClientResult[] = [];
  const memory: MemoryResult[] = [];
  const faults: Fault[] = [];

  const attempt = async (name: string, measure: () => Promise<void>): Promise<void> => {
    try {
      await measure();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      faults.push({ name, message: message.trim() });
      input.say(`${name} failed: ${error instanceof Error ? error.stack : message}`);
      for (const { label, logTail } of sides.servers) input.say(`The log of ${label} ends:\n${logTail()}`);
    }
  };

  for (const step of stepsOf(input, { scenarios, changes, clients, memory })) await attempt(step.name, step.measure);
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: describeMachine(),
    versions: await describeVersions(programs),
    repository: context.project.description,
    accounting: sides.servers[0]?.group.accounting ?? '',
    secondsPerRound: options.seconds,
    rounds: options.rounds,
    scenarios,
    changes,
    clients,
    memory,
    faults,
  };
}

interface Found {
  readonly scenarios: ScenarioResult[];
  readonly changes: ChangeResult[];
  readonly clients: ClientResult[];
  readonly memory: MemoryResult[];
}

interface Step {
  readonly name: string;
  measure(): Promise<void>;
}

/** Yields the chosen scenarios in the table's order. */
function* stepsOf({ options, context, sides, say }: RunInput, found: Found): Generator<Step> {
  const chosen = (name: string): boolean => options.only === null || options.only.includes(name);
  const probe = createDurabilityProbe(context.workFolder);
  const named = SCENARIOS.filter(({ name }) => chosen(name));
  for (const scenario of atClientCounts(named, SCENARIOS, options.clients)) {
    const taking = sides.sidesFor(scenario);
    if (taking.length === 0) continue;
    yield {
      name: `${scenario.name} (${scenario.clients})`,
      async measure() {
        say(`${scenario.title} (${scenario.clients}): ${taking.map(({ label }) => label).join(', ')}`);
        found.scenarios.push(await measureScenario(scenario, context, taking, probe));
      },
    };
  }
  for (const tree of chosen(WRITING.name) ? WRITTEN_TREES : []) {
    yield {
      name: `${WRITING.name}, ${tree.title}`,
      async measure() {
        say(`Preparing commits to ${tree.title}`);
        const written = await contextOfTree(context, tree);
        for (const scenario of writingScenarios(tree, options.clients)) {
          const doors = doorsOf(sides.sidesFor(scenario));
          say(`${scenario.title} (${scenario.clients}): ${doors.map(({ label }) => label).join(', ')}`);
          found.scenarios.push(await measureScenario(scenario, written, doors, probe));
        }
        say(`Whole changes of ${tree.title}`);
        found.changes.push(...(await measureWholeChanges(written, tree.title, sides.servers)));
      },
    };
  }
  for (const command of chosen(REAL_CLIENT.name) ? CLIENT_COMMANDS : []) {
    yield {
      name: `${REAL_CLIENT.name}, ${command.title}`,
      async measure() {
        say(`real client: ${command.title}`);
        found.clients.push(await measureRealClient(command, context, sides.servers));
      },
    };
  }
  for (const side of chosen(MEMORY.name) ? sides.servers : []) {
    yield {
      name: `${MEMORY.name}, ${side.label}`,
      async measure() {
        say(`${MEMORY.title}: ${side.label}`);
        found.memory.push(await measureMemory(context, side, await prepareLargeFolder(context)));
      },
    };
  }
}
