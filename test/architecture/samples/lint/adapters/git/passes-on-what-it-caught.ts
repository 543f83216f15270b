// accepted
export function length(text: string): number {
  return [...text].length;
}

export function rethrow(error: unknown, signal: AbortSignal): Promise<never> {
  if (signal.aborted) return Promise.reject(signal.reason);
  throw error;
}
