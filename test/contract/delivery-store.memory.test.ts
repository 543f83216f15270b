/** The contract of the store of deliveries on its in-memory twin. */
import { createMemoryDeliveryStore, createMemoryPolicyMarks } from '../support/memory/delivery-store.ts';
import { deliveryStoreContract } from './delivery-store.ts';

deliveryStoreContract('memory', async () => ({
  store: createMemoryDeliveryStore(),
  marks: createMemoryPolicyMarks(),
}));
