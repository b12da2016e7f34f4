export { buildProgram } from './program.ts'
export { runCli } from './run-cli.ts'
export { createProcessDeps, type CliDeps } from './deps.ts'
export {
  loadConfig,
  type LoadedConfig,
  type ResolvedConfig,
  type SettingOrigin,
} from './config/load-config.ts'
export { ensembleResult } from './live/ensemble-result.ts'
export type { OpenStores, PartContext, RunningApi, RunningPart, StackParts } from './stack/parts.ts'
export { startStack, type Stack, type StartStack } from './stack/start-stack.ts'
