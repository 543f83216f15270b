/** Tests deploy/kubernetes.yaml: its parts fit each other and the server, and the schemas of Kubernetes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { readSettings } from '../../apps/server/settings.ts';
import { ROOT } from '../architecture/source-tree.ts';
import { needs } from '../support/optional-suites.ts';
import { parseDockerfile } from './dockerfile.ts';
import { knownSettings, settingsNamed } from './known-settings.ts';

const MANIFESTS = path.join(ROOT, 'deploy/kubernetes.yaml');
const TEXT = readFileSync(MANIFESTS, 'utf8');
const OBJECTS = parseAllDocuments(TEXT);

/** Returns what stands at the keys, in the one object of the kind and name. */
function at(kind: string, name: string, keys: readonly (string | number)[]): unknown {
  const found = OBJECTS.filter((one) => one.get('kind') === kind && one.getIn(['metadata', 'name']) === name);
  assert.equal(found.length, 1, `${kind} ${name}`);
  const value: unknown = found[0]?.getIn(keys);
  assert.notEqual(value, undefined, `${kind} ${name}: ${keys.join('.')}`);
  return value;
}

const CONTAINER = ['spec', 'template', 'spec', 'containers', 0];

describe('The manifests of Kubernetes', () => {
  test('select the pods of the StatefulSet in both services and in the disruption budget', () => {
    const label = 'app.kubernetes.io/name';
    const ofPods = at('StatefulSet', 'strata', ['spec', 'template', 'metadata', 'labels', label]);
    for (const [kind, name, keys] of [
      ['StatefulSet', 'strata', ['spec', 'selector', 'matchLabels', label]],
      ['PodDisruptionBudget', 'strata', ['spec', 'selector', 'matchLabels', label]],
      ['Service', 'strata', ['spec', 'selector', label]],
      ['Service', 'strata-nodes', ['spec', 'selector', label]],
    ] as const) {
      assert.equal(at(kind, name, keys), ofPods, `${kind} ${name}`);
    }
    assert.equal(at('StatefulSet', 'strata', ['spec', 'serviceName']), 'strata-nodes');
  });

  test('probe the paths and the port that the server has, and give it time to end its requests', () => {
    const probe = (name: string): unknown => at('StatefulSet', 'strata', [...CONTAINER, name, 'httpGet', 'path']);
    assert.deepEqual(['startupProbe', 'livenessProbe', 'readinessProbe'].map(probe), [
      '/healthz',
      '/healthz',
      '/readyz',
    ]);
    const { env } = parseDockerfile(readFileSync(path.join(ROOT, 'deploy/Dockerfile'), 'utf8'));
    assert.equal(String(at('StatefulSet', 'strata', [...CONTAINER, 'ports', 0, 'containerPort'])), env['STRATA_PORT']);
    assert.equal(at('StatefulSet', 'strata', [...CONTAINER, 'volumeMounts', 0, 'mountPath']), env['STRATA_DATA_DIR']);
    assert.ok(Number(at('StatefulSet', 'strata', ['spec', 'template', 'spec', 'terminationGracePeriodSeconds'])) > 60);
  });

  test('name only settings that the server reads', () => {
    const known = knownSettings();
    assert.deepEqual(
      settingsNamed(TEXT).filter((name) => !known.has(name)),
      [],
    );
  });

  /**
   * Kubernetes documentation, "Accessing the Service", Environment variables: a pod gets `<NAME>_SERVICE_HOST`,
   * `<NAME>_SERVICE_PORT` and `<NAME>_PORT=tcp://<address>:<port>` of each service, and they win over those of the
   * image.
   */
  test('keep the variables that Kubernetes makes of the service from being settings', () => {
    assert.throws(() => readSettings({ STRATA_PORT: 'tcp://10.0.0.11:8080' }, '/'), /STRATA_PORT is/);
    assert.equal(at('StatefulSet', 'strata', ['spec', 'template', 'spec', 'enableServiceLinks']), false);
  });

  test('have the form that the schemas of Kubernetes ask for', needs('kubectl-validate'), () => {
    const { status, stdout, stderr } = spawnSync('kubectl-validate', [MANIFESTS], { encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
  });
});
