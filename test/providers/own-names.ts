/**
 * Loaded into a server before its own modules (`node --import`): the names of providers' hosts, which no name server is
 * asked for, lead to the stand-ins on the loopback interface.
 */
import { Resolver } from 'node:dns/promises';
import { PROVIDERS } from './rows.ts';

const isPlayed = (name: string): boolean =>
  PROVIDERS.some(({ host }) => host !== undefined && (name === host || name.endsWith(`.${host}`)));

const { resolve4, resolve6 } = Resolver.prototype;
Resolver.prototype.resolve4 = new Proxy(resolve4, {
  apply: (target, self, [name, ...more]: [string]) =>
    isPlayed(name) ? Promise.resolve(['127.0.0.1']) : Reflect.apply(target, self, [name, ...more]),
});
Resolver.prototype.resolve6 = new Proxy(resolve6, {
  apply: (target, self, [name, ...more]: [string]) =>
    isPlayed(name) ? Promise.resolve([]) : Reflect.apply(target, self, [name, ...more]),
});
