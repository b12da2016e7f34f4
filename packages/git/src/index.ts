export type {
  Combined,
  CombineRequest,
  CommitRequest,
  Conflict,
  Diff,
  Mirror,
  Mirrors,
  PushResult,
  TreeChange,
  TreeFile,
} from './port.ts'
export type { OpenPack } from './check-pack.ts'
export { createMirrors, type MirrorsOptions } from './mirrors.ts'
export type { GitLogEntry } from './run-git.ts'
export { parseLocation, type Location } from './location.ts'
export { isPublicAddress } from './public-address.ts'
