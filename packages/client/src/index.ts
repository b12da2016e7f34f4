export type { BlobClient, BlobContent } from './blob-client.ts'
export { createTuttiClient, type TuttiClient, type TuttiClientOptions } from './tutti-client.ts'
export { endpointFile, readEndpoint, type Endpoint, type FoundEndpoint } from './endpoint.ts'
export { tuttiErrorOf } from './tutti-error-of.ts'
export {
  followAgentEvents,
  followEnsemble,
  followEnsembleEvents,
  type ClientSource,
  type FollowAgentEvents,
  type FollowEnsemble,
  type LoggedEvent,
} from './follow.ts'
export type { ResumePolicy } from './resume-stream.ts'
