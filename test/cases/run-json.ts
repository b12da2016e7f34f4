/** What `tutti run -o json` prints: the object that the issue tracker of a user's script relies on. */
export interface RunJson {
  readonly ensemble_id: string
  readonly phase: string
  readonly reason: string
  readonly attempts: readonly {
    readonly bc_id: string
    readonly status: string
    readonly reason: string
    readonly commit: string
    readonly files_changed: number
    readonly check: { readonly exit_code: number | null } | null
  }[]
  readonly synthesis: { readonly strategy: string; readonly commit: string; readonly branch: string } | null
  readonly report: {
    readonly conflicts: readonly {
      readonly path: string
      readonly line: number
      readonly versions: readonly {
        readonly bc_id?: string
        readonly bc_ids?: readonly string[]
        readonly text: string
      }[]
    }[]
    readonly equal_groups: readonly (readonly string[])[]
    readonly failures: readonly {
      readonly bc_id: string
      readonly reason: string
      readonly message: string
      readonly log_command: string
    }[]
  }
  readonly pull_request: { readonly url: string; readonly number: number; readonly branch: string } | null
}
