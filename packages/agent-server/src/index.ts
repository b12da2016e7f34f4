export type { AgentServer, CaptureSink, CaptureSummary, CapturedChange, FileState, HydrateRequest } from './port.ts'
