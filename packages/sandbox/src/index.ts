export type {
  Exec,
  ExecExit,
  ExecRequest,
  HostSandboxProvider,
  LimitName,
  Sandbox,
  SandboxProvider,
  SandboxRef,
  SandboxSpec,
} from './port.ts'
export { limitLife } from './limit-life.ts'
export { createLocalSandboxes, type LocalSandboxesOptions } from './local-sandboxes.ts'
export type { LimiterKind } from './resource-group.ts'
export { removeAbandonedProbeRoots, withProbeRoot } from './probe-root.ts'
export { isMarked, markSandbox } from './sandbox-mark.ts'
export { sandboxMarker } from './sandbox-marker.ts'
export { describeLocalSandbox, type LocalSandboxDescription } from './describe-local-sandbox.ts'
