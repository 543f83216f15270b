/**
 * The suites that need something this machine may not have: what each needs, and how to run it.
 *
 * Invariants: a suite that is left out is reported as skipped, with its name and reason.
 */
import { spawnSync } from 'node:child_process';
import { findChromium } from './chromium.ts';
import { hasOwnNetworks } from './cloud/network.ts';
import { type SkipOptions, skippedFor } from './skipped.ts';
import { findTool, type Tool } from './tools.ts';

export interface OptionalSuite {
  readonly name: string;
  /** The environment variable that names the external service, or the program that must be installed. */
  readonly part: string;
  readonly command: string;
}

export const OPTIONAL_SUITES = [
  {
    name: 'a real repository through push, fetch and clone',
    part: 'STRATA_REAL_REPOSITORY',
    command: 'STRATA_REAL_REPOSITORY=<a git bundle> npm run test:long -- real-repository',
  },
  {
    name: 'the event store contract on EventStoreDB',
    part: 'STRATA_EVENTSTORE_URL',
    command: "STRATA_EVENTSTORE_URL='esdb://127.0.0.1:2113?tls=false' npm test -- eventstoredb",
  },
  {
    name: 'the contracts of the event log on a new EventStoreDB each',
    part: 'STRATA_EVENTSTORE_SERVER',
    command: 'STRATA_EVENTSTORE_SERVER=<a program that starts one> npm test -- eventstoredb',
  },
  {
    name: "the workflows' contract on Temporal",
    part: 'temporal-test-server',
    command: '.ci/temporal-tools.sh && npm test -- temporal',
  },
  {
    name: "a real Temporal server's restarts",
    part: 'temporal',
    command: '.ci/temporal-tools.sh && npm run test:long -- temporal',
  },
  {
    name: 'layers in a bucket of a real S3 server',
    part: 'versitygw',
    command: '.ci/s3-tools.sh && npm test -- s3',
  },
  {
    name: 'the alerts on a service that is broken on purpose',
    part: 'promtool',
    command: '.ci/prometheus-tools.sh && npm run test:long -- alert-drill',
  },
  {
    name: "backups of an operator's own PostgreSQL",
    part: 'pg_dump-18',
    command: '.ci/postgres-tools.sh && .ci/s3-tools.sh && npm run test:long -- scenarios/backup',
  },
  {
    name: "a cloud that checks the service's identity tokens",
    part: 'network-namespace',
    command: 'unshare -rn true && .ci/s3-tools.sh && npm test -- web-identity',
  },
  {
    name: 'the website in a browser',
    part: 'chromium',
    command: 'apt-get install chromium && npm test -- browser',
  },
  {
    name: 'commits in other encodings, as git shows them',
    part: 'iconv',
    command: 'apt-get install libc-bin && npm test -- shown-commit',
  },
  {
    name: 'the second verifier of logs, and the samples in Python',
    part: 'python3',
    command: 'apt-get install python3 && npm test -- apps/verifier ending-keys webhook-samples',
  },
  {
    name: 'completion in zsh',
    part: 'zsh',
    command: 'apt-get install zsh && npm test -- completion',
  },
  {
    name: 'completion in fish',
    part: 'fish',
    command: 'apt-get install fish && npm test -- completion',
  },
  {
    name: 'modules of Go from repositories',
    part: 'go',
    command: 'apt-get install golang-go && npm test -- go-get',
  },
  {
    name: "the unit by systemd's own check",
    part: 'systemd-analyze',
    command: 'apt-get install systemd && npm test -- deploy/service-unit',
  },
  {
    name: 'the manifests by the schemas of Kubernetes',
    part: 'kubectl-validate',
    command: 'go install sigs.k8s.io/kubectl-validate@v0.0.4 && npm test -- deploy/kubernetes',
  },
] as const satisfies readonly OptionalSuite[];

type Part = (typeof OPTIONAL_SUITES)[number]['part'];

/**
 * Returns the options of a test or suite that runs only where its external part is present:
 * `describe('EventStoreDB', needs('STRATA_EVENTSTORE_URL'), () => …)`.
 */
export function needs(part: Part): SkipOptions {
  return skippedFor(isThere(part) ? false : `needs ${part}`);
}

export function isThere(part: Part): boolean {
  if (part === 'chromium') return findChromium() !== null;
  if (isProgram(part)) return spawnSync(part, ['--version']).error === undefined;
  if (part === 'network-namespace') return hasOwnNetworks();
  return isTool(part) ? findTool(part) !== null : (process.env[part] ?? '') !== '';
}

function isProgram(part: Part): boolean {
  return ['python3', 'go', 'iconv', 'zsh', 'fish', 'systemd-analyze', 'kubectl-validate'].includes(part);
}

function isTool(part: Part): part is Tool & Part {
  return ['temporal', 'temporal-test-server', 'versitygw', 'promtool', 'pg_dump-18'].includes(part);
}
