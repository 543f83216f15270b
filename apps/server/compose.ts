/**
 * The one place where the parts of the server are chosen and joined.
 *
 * Must stay true: nothing else knows which technology stands behind a port; stopping drains requests first, then
 * flushes what is gathered in memory, then closes parts in the reverse order of opening, PostgreSQL last.
 */
import type { Server } from 'node:http';
import path from 'node:path';
import type { Logger } from 'pino';
import packageJson from '../../package.json' with { type: 'json' };
import { createFilesystemLayerStore } from '../../adapters/filesystem/layer-store.ts';
import { createGitObjectDatabase } from '../../adapters/git/object-database.ts';
import { newDeviceSecret, newUserCode } from '../../adapters/node/device-codes.ts';
import { createHttpEgress } from '../../adapters/http-egress/egress.ts';
import { newTokenSecret } from '../../adapters/node/token-secret.ts';
import { newWebhookSecret } from '../../adapters/node/webhook-secret.ts';
import { createPostgresLastUse } from '../../adapters/postgres/last-use.ts';
import { msBetween } from '../../core/kernel/ids.ts';
import { createDeletionFinisher } from '../../core/use-cases/accounts/finish-deletions.ts';
import { createTransferMeter } from '../../core/use-cases/transfer-meter.ts';
import { createApi } from '../api/app.ts';
import { answerUnreadable } from '../api/faults.ts';
import { createGitHandler } from '../git-http/handler.ts';
import { closer, composeFoundation } from './foundation.ts';
import { createHttpServer } from './http.ts';
import { createMetrics } from './metrics.ts';
import { every } from './periodic.ts';
import { composeProjections } from './projections.ts';
import { type Duty, readiness } from './readiness.ts';
import type { Role, Settings } from './settings.ts';
import { createClientAddress, createSourceAddressRef } from './source-address.ts';
import { startSweeps } from './sweeps.ts';
import { composeDeliveryStore, startWebhooks } from './webhooks.ts';
import { startWorkflows } from './workflows.ts';

/** Entities in memory: a few hundred thousand small ones, or a few very large. */
const ENTITIES_SIZE_BYTES_MAX = 64 * 1024 * 1024;
const FLUSH_INTERVAL_MS = 60_000;
/** A deletion that its own request did not finish is finished between one and two of these later. */
const DELETIONS_INTERVAL_MS = 5_000;

export interface ComposedServer {
  /** Not yet listening. */
  readonly http: Server;
  /** Drains and closes everything. */
  stop(): Promise<void>;
}

export async function composeServer(settings: Settings, log: Logger): Promise<ComposedServer> {
  const parts = closer();
  const metrics = createMetrics();
  const onFault = (what: string, cause: unknown): void => {
    metrics.fault(what);
    log.error({ err: cause, what }, 'A fault was survived');
  };
  try {
    const foundation = await composeFoundation(settings, log, {
      besideServer: false,
      entitiesSizeBytesMax: ENTITIES_SIZE_BYTES_MAX,
      onFault,
    });
    parts.add(() => foundation.close());
    const { context, pool } = foundation;
    const layers = await createFilesystemLayerStore({ directory: settings.layersDir });
    const objects = await createGitObjectDatabase({
      directory: path.join(settings.dataDir, 'cache'),
      layers,
      cacheBytesMax: settings.cacheBytesMax,
      log,
    });
    parts.add(() => objects.close());
    const { runner, readModels, timers, close } = composeProjections(foundation, objects, log, metrics.projections);
    parts.add(close);
    const runs = (role: Role): boolean => settings.roles.includes(role);
    metrics.roles(settings.roles);
    await runner.start({ lead: runs('worker') });
    const outgoing = createHttpEgress({
      ownUrls: [settings.baseUrl, settings.webUrl],
      privateAllowed: settings.allowPrivateTargets,
    });
    const deliveries = composeDeliveryStore(foundation);
    const duties: Record<string, Pick<Duty, 'isDegraded'>> = {};
    if (runs('worker')) {
      const finishDeletions = createDeletionFinisher({ ...context, readModels });
      parts.add(every(DELETIONS_INTERVAL_MS, finishDeletions, (cause) => onFault('deletions', cause)));
      const workflows = await startWorkflows({
        foundation,
        timers,
        temporal: settings.temporal,
        metrics,
        log,
        onFault,
      });
      duties['workflows'] = workflows.duty;
      parts.add(workflows.stop);
      parts.add(startSweeps({ foundation, layers, metrics, log, onFault }));
      const { webUrl, retentionDays } = settings;
      const webhooks = { foundation, deliveries, objects, outgoing, due: readModels, metrics, log };
      const delivering = startWebhooks({ ...webhooks, webUrl, retentionDays, version: packageJson.version, onFault });
      duties['webhooks'] = delivering.duty;
      parts.add(delivering.stop);
    }
    const lastUse = createPostgresLastUse(pool, context.clock);
    const transfer = createTransferMeter(context, context.ids.next().replaceAll('-', ''));
    const flush = async (): Promise<void> => {
      await transfer.flush();
      await lastUse.flush();
    };
    parts.add(flush);
    parts.add(every(FLUSH_INTERVAL_MS, flush, (cause) => onFault('flush', cause)));
    const shared = {
      ...context,
      layers,
      objects,
      usage: readModels,
      readModels,
      lastUse,
      transfer,
      clientAddress: createClientAddress(settings.trustedProxies),
      sourceAddressRef: createSourceAddressRef(context.vault),
      log,
    };
    const git = createGitHandler({
      ...shared,
      agent: `strata/${packageJson.version}`,
      onFinished: (finished) => {
        metrics.gitFinished(finished);
        log.info(finished, 'git');
      },
    });
    const api = createApi({
      ...shared,
      outgoing,
      deliveries,
      newTokenSecret,
      newUserCode,
      newDeviceSecret,
      newWebhookSecret,
      addresses: () => ({ baseUrl: settings.baseUrl, webUrl: settings.webUrl }),
      version: packageJson.version,
      onFinished: (finished) => {
        metrics.apiFinished(finished.operationId ?? 'none', finished.status, finished.durationMs);
        log.info(finished, 'api');
      },
    });
    await api.ready();
    metrics.gauge('strata_entities', 'Entities in memory', () => context.entities.residents().count);
    metrics.gauge('strata_entities_bytes', 'Bytes of entities', () => context.entities.residents().sizeBytes);
    metrics.gauge('strata_webhook_deliveries_pending', 'Webhook deliveries that have not ended', async () => {
      return (await readModels.backlog()).pending;
    });
    metrics.gauge('strata_webhook_oldest_pending_seconds', 'Age of the oldest of them, 0 without any', async () => {
      const { oldestAt } = await readModels.backlog();
      return oldestAt === null ? 0 : msBetween(oldestAt, context.clock.now()) / 1_000;
    });
    metrics.gauge(
      'strata_workflow_overdue',
      'Steps of workflows that should have been carried out by now',
      async () => {
        return (await timers.overdue(context.clock.now())).count;
      },
    );
    metrics.gauge(
      'strata_workflow_oldest_overdue_seconds',
      'How late the oldest of them is, 0 without any',
      async () => {
        const now = context.clock.now();
        const { oldestAt } = await timers.overdue(now);
        return oldestAt === null ? 0 : msBetween(oldestAt, now) / 1_000;
      },
    );
    const probes = {
      roles: settings.roles,
      metrics: async () => ({ contentType: metrics.contentType, text: await metrics.text() }),
      ready: () => readiness({ log: context.entities.barrier() }, duties),
    };
    const http = createHttpServer({
      tls: settings.tls,
      git: runs('git') ? git : null,
      probes,
      rest: runs('api') ? (request, response) => api.routing(request, response) : null,
      newRequestId: () => context.ids.next(),
      onUnreadable: (error, socket) => answerUnreadable(error, socket, context.ids.next()),
    });
    return { http, stop: () => stop(http, parts) };
  } catch (error) {
    await parts.close();
    throw error;
  }
}

async function stop(http: Server, parts: { close(): Promise<void> }): Promise<void> {
  const closed = new Promise<void>((resolve) => http.close(() => resolve()));
  http.closeIdleConnections();
  await closed;
  await parts.close();
}
