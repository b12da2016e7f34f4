export type { EqualGroup, PlanRequest, SynthesisPlan, SynthesisStrategy } from './port.ts'
export { merge } from './merge.ts'
export { pick } from './pick.ts'
export { findStrategy, strategies } from './strategies.ts'
export {
  mergeReport,
  type MergeReport,
  type MergeReportRequest,
  type ReportedConflict,
  type ReportedFailure,
} from './report.ts'
