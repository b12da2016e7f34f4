// Every benchmark, one after the other: they share two cores with nothing else.
await import('./bench-ensemble.ts')
