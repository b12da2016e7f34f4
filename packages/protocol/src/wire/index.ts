export { blobIdFromBytes, blobIdToBytes } from './blob-bytes.ts'
export {
  blobsOfState,
  decodeCloudAgentState,
  encodeCloudAgentState,
  foldCloudAgentState,
  initialCloudAgentState,
  type KnownAgent,
} from './cloud-agent-state.ts'
export { foldEnsembleStatus, hasEnded, initialEnsembleStatus } from './ensemble-status.ts'
export { fromInteractionUpdate, toInteractionUpdate } from './interaction-update.ts'
export { questionToWire } from './question.ts'
export { fromJsonRpc, toJsonRpc, type JsonRpcNotification } from './json-rpc.ts'
export { decodeSegment, encodeSegment, type SegmentHead, type SegmentRecord } from './log-segment.ts'
export {
  composerStatusFromWire,
  composerStatusToWire,
  phaseFromWire,
  phaseToWire,
  sourceFromWire,
  sourceToWire,
  workflowStatusFromWire,
  workflowStatusToWire,
  type SourceName,
} from './statuses.ts'
