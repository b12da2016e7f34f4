export { isAbandoned, passingName } from './passing-name.ts'
export { withProcessLock } from './process-lock.ts'
export { isRunning, isSameProcess, processStart } from './process-start.ts'
export {
  allPids,
  bootId,
  pidNamespace,
  processStat,
  processesInNamespace,
  processesMarked,
  signalProcess,
  type ProcessStat,
} from './processes.ts'
