/** Why Strata sends no request to a URL. A retry fails again while the cause remains. */
export type TargetFault =
  | 'url-malformed'
  | 'url-too-long'
  | 'url-not-https'
  | 'url-with-credentials'
  | 'own-host'
  | 'address-not-public'
  /** The address that the connection reached is not one of those that were checked. */
  | 'peer-not-checked';
