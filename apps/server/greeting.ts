/**
 * What a person who started the server on a terminal reads after its log lines: its address, the way to a first account
 * until one exists, and the place of the data.
 *
 * Invariants: it holds no secret. The addresses of databases do, so they are not printed.
 */
import { placeOfLayersOutside } from './layer-storage/stores.ts';
import type { Settings } from './settings.ts';

const ACCOUNT_COMMAND =
  'npm run --silent strata-admin -- account create --username NAME --email ADDRESS --password-stdin';

type Greeted = Pick<
  Settings,
  'webUrl' | 'dataDir' | 'layerStore' | 'databaseUrl' | 'eventStoreDb' | 'roles' | 'signUpOpen'
>;

/** `hasAccount`: whether somebody got the first account already. */
export function greeting(settings: Greeted, hasAccount: boolean): string {
  const { webUrl, roles, signUpOpen } = settings;
  const account = roles.includes('website') && signUpOpen ? `${webUrl}/sign-up` : ACCOUNT_COMMAND;
  const first = hasAccount ? '' : `  First account  ${account}\n`;
  return `\n  Address        ${webUrl}\n${first}  Data           ${dataOf(settings)}\n\n`;
}

function dataOf({ dataDir, layerStore, databaseUrl, eventStoreDb }: Greeted): string {
  const others = [
    placeOfLayersOutside(layerStore, dataDir),
    databaseUrl === null ? null : 'the PostgreSQL of STRATA_DATABASE_URL',
    eventStoreDb === null ? null : 'the EventStoreDB of STRATA_EVENTSTORE_URL',
  ];
  return [dataDir, ...others.filter((place) => place !== null)].join(', ');
}
