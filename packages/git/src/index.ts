export type { Combined, CombineRequest, CommitRequest, Conflict, Mirror, Mirrors, PushResult, TreeChange } from './port.ts'
