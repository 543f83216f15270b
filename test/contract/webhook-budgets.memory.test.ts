/** The contract of budgets of webhook deliveries, and of pushes that wait, on the in-memory versions. */
import {
  createMemoryWaitingDeliveries,
  createMemoryWaitingPushes,
  createMemoryWebhookBudgets,
} from '../support/memory/webhook-budgets.ts';
import { webhookBudgetsContract } from './webhook-budgets.ts';

webhookBudgetsContract('memory', async () => ({
  budgets: createMemoryWebhookBudgets(),
  waiting: createMemoryWaitingPushes(),
  rows: createMemoryWaitingDeliveries(),
}));
