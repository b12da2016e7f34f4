export type { Exec, ExecExit, ExecRequest, Sandbox, SandboxProvider, SandboxRef, SandboxSpec } from './port.ts'
