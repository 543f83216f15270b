/** The contract of budgets of webhook deliveries, and of pushes that wait, on PostgreSQL. */
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresWaitingDeliveries } from '../../adapters/postgres/waiting-deliveries.ts';
import { createPostgresWaitingPushes } from '../../adapters/postgres/waiting-pushes.ts';
import { createPostgresWebhookBudgets } from '../../adapters/postgres/webhook-budgets.ts';
import { cleanUp } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { testDatabase } from '../support/postgres.ts';
import { webhookBudgetsContract } from './webhook-budgets.ts';

webhookBudgetsContract('PostgreSQL', async (context) => {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return {
    budgets: createPostgresWebhookBudgets(pool),
    waiting: createPostgresWaitingPushes(pool),
    rows: createPostgresWaitingDeliveries(pool),
  };
});
