export type { Forge, NewPullRequest, PullRequest } from './port.ts'
