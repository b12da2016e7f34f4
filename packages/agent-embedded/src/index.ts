export { createEmbeddedAdapter, type EmbeddedAdapterDeps } from './embedded-adapter.ts'
export type { BrainEnv } from './brain.ts'
