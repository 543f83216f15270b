/**
 * Whether the server makes traces: the settings `OTEL_*` that decide it. OpenTelemetry's SDK reads all others itself.
 *
 * Invariants: no value is printed, since an address may hold a password.
 */
import type { SettingsReader } from './settings-reader.ts';

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];

export function readTracing({ text, fault }: SettingsReader): boolean {
  const isDisabled = text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || text('OTEL_TRACES_EXPORTER') === 'none';
  const named = ENDPOINTS.filter((name) => text(name) !== null);
  if (isDisabled) return false;
  for (const name of named) {
    if (!isHttp(text(name) ?? '')) fault(name, 'set, but no such address', 'the http or https URL of a collector');
  }
  return named.length > 0;
}

function isHttp(address: string): boolean {
  return /^https?:\/\//.test(address) && URL.canParse(address);
}
