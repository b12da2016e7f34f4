export type { Forge, NewPullRequest, PullRequest } from './port.ts'
export { createLocalForge, type LocalForgeOptions } from './local-forge.ts'
export { cutBody, describeEnsemble, type EnsembleDescription } from './describe.ts'
export { maxBodyLength } from './limits.ts'
