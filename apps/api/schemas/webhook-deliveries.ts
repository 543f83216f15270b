/** Deliveries of webhooks on the wire. */
import { z } from 'zod';
import { WEBHOOK_EVENT_KINDS } from '../../../core/kernel/webhook-events.ts';
import { flag, ID, LIMIT, TIMESTAMP } from './common.ts';

const ERROR_TEXT = z.string().nullable().meta({ description: 'Why the attempt failed; null for a success.' });
const HTTP_STATUS = z.int().nullable().meta({ description: 'Null if the receiver did not answer.' });

const ATTEMPT = z.object({
  at: TIMESTAMP,
  http_status: HTTP_STATUS,
  error: ERROR_TEXT,
  detail: z.string().nullable().meta({
    description: 'A code, such as ECONNREFUSED; answer-cut: the body of the answer broke off or did not end in time.',
  }),
  duration_ms: z.int().nonnegative(),
});

const DELIVERY = z
  .object({
    id: ID.meta({ description: 'Sent as X-Service-Delivery, by every attempt.' }),
    event_id: ID.meta({ description: 'Sent as X-Service-Event-Id.' }),
    event: z.enum(WEBHOOK_EVENT_KINDS),
    status: z.enum(['PENDING', 'SUCCESS', 'FAILED']),
    http_status: HTTP_STATUS.meta({ description: 'The status of the last attempt.' }),
    attempts: z.int().nonnegative().meta({ description: 'Attempts so far, those before a redelivery included.' }),
    error: ERROR_TEXT.meta({
      description:
        "The error of the last attempt. While the account's budget of the hour makes the delivery wait: that, and until when.",
    }),
    response_body: z.string().nullable().meta({
      description: 'The first 16 KiB of the last answer, while they are kept; bytes that are not UTF-8 are replaced.',
    }),
    created_at: TIMESTAMP.meta({
      description: 'When the delivery was made; that of the push, while the delivery waits for its hour.',
    }),
    last_attempt_at: TIMESTAMP.nullable(),
    next_attempt_at: TIMESTAMP.nullable().meta({ description: 'Null when the delivery has ended.' }),
    attempt_log: z.array(ATTEMPT).meta({ description: 'Oldest first.' }),
    payload: z.looseObject({}).nullable().optional().meta({
      description: 'The body of the request; only with include_payload. Null before its hour, and when no longer kept.',
    }),
  })
  .meta({ id: 'WebhookDelivery' });

export const DELIVERIES = z.object({ deliveries: z.array(DELIVERY) }).meta({ id: 'WebhookDeliveryList' });

export const DELIVERIES_QUERY = z.object({
  limit: LIMIT,
  include_payload: flag('Whether each delivery shows its payload.'),
});

export const ASKED_DELIVERY = z.object({ event_id: ID, delivery_id: ID }).meta({ id: 'AskedDelivery' });
