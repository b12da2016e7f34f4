/** The settings that a worker uses, by their names in the core's table; milliseconds, bytes, counts and words. */
export interface WorkerConfig {
  readonly 'sandboxes.max': number
  readonly 'sandboxes.provider': 'local' | 'docker'
  readonly 'sandboxes.image': string
  readonly 'sandboxes.engine': string
  readonly 'sandboxes.pull': 'never' | 'missing'
  readonly 'turn.capture_interval': number
  readonly 'sandbox.max_life': number
  readonly 'sandbox.end_margin': number
  readonly 'turn.checkpoint_interval': number
  readonly 'turn.capture_timeout': number
  readonly 'turn.state_interval': number
  readonly 'workspace.watch': 'no' | 'yes'
  readonly 'workspace.ignored': 'none' | 'small' | 'all'
  readonly 'workspace.env_files': 'no' | 'yes'
  readonly 'sandbox.answer_timeout': number
  readonly 'stop.grace': number
  readonly 'stop.answer': number
  readonly 'turn.heartbeat_timeout': number
  readonly 'agent.retention': number
}
