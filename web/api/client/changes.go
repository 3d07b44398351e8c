// Code generated from the OpenAPI document by web/api/generate. DO NOT EDIT.

package client

import "context"
import "net/url"

// Gc: Consolidate packs and remove unreachable objects (POST /gc).
func (c *Client) Gc(ctx context.Context, body *GcBody, options ...Option) (out Maintenance, err error) {
	err = c.do(ctx, "POST", "/gc", body, &out, options)
	return out, err
}

// AddKey: Add an SSH key (POST /keys).
func (c *Client) AddKey(ctx context.Context, body *AddKeyBody, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/keys", body, &out, options)
	return out, err
}

// RemoveKey: Remove an SSH key (DELETE /keys/{key}).
func (c *Client) RemoveKey(ctx context.Context, key string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/keys/"+url.PathEscape(key), nil, &out, options)
	return out, err
}

// RetryNotifications: Deliver now what waits or was given up (POST /notifications/retry).
func (c *Client) RetryNotifications(ctx context.Context, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/notifications/retry", nil, &out, options)
	return out, err
}

// TestSink: Send a test notification to a sink (POST /notifications/sinks/{sink}/test).
func (c *Client) TestSink(ctx context.Context, sink string, options ...Option) (out NotificationTest, err error) {
	err = c.do(ctx, "POST", "/notifications/sinks/"+url.PathEscape(sink)+"/test", nil, &out, options)
	return out, err
}

// RetryNotification: Deliver one notification now, to the sinks that did not get it (POST /notifications/{id}/retry).
func (c *Client) RetryNotification(ctx context.Context, id string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/notifications/"+url.PathEscape(id)+"/retry", nil, &out, options)
	return out, err
}

// CreateProject: Create a project (POST /projects).
func (c *Client) CreateProject(ctx context.Context, body *CreateProjectBody, options ...Option) (out ProjectDocument, err error) {
	err = c.do(ctx, "POST", "/projects", body, &out, options)
	return out, err
}

// DestroyProject: Undeploy a project and delete it (DELETE /projects/{name}).
func (c *Client) DestroyProject(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/projects/"+url.PathEscape(name), nil, &out, options)
	return out, err
}

// Approve: Approve a waiting deployment (POST /projects/{name}/approvals/{id}/approve).
func (c *Client) Approve(ctx context.Context, name string, id string, body *ApproveBody, options ...Option) (out Decision, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/approvals/"+url.PathEscape(id)+"/approve", body, &out, options)
	return out, err
}

// Reject: Reject a deployment that waits for approval (POST /projects/{name}/approvals/{id}/reject).
func (c *Client) Reject(ctx context.Context, name string, id string, body *RejectBody, options ...Option) (out Decision, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/approvals/"+url.PathEscape(id)+"/reject", body, &out, options)
	return out, err
}

// PruneArchives: Remove archives beyond the retention limits (POST /projects/{name}/archives/prune).
func (c *Client) PruneArchives(ctx context.Context, name string, body *PruneBody, options ...Option) (out Pruned, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/archives/prune", body, &out, options)
	return out, err
}

// UnpinArchive: Unpin an archive (DELETE /projects/{name}/archives/{archive}/pin).
func (c *Client) UnpinArchive(ctx context.Context, name string, archive string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/projects/"+url.PathEscape(name)+"/archives/"+url.PathEscape(archive)+"/pin", nil, &out, options)
	return out, err
}

// PinArchive: Keep an archive until it is unpinned (PUT /projects/{name}/archives/{archive}/pin).
func (c *Client) PinArchive(ctx context.Context, name string, archive string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "PUT", "/projects/"+url.PathEscape(name)+"/archives/"+url.PathEscape(archive)+"/pin", nil, &out, options)
	return out, err
}

// RestoreArchive: Restore an archive (POST /projects/{name}/archives/{archive}/restore).
func (c *Client) RestoreArchive(ctx context.Context, name string, archive string, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/archives/"+url.PathEscape(archive)+"/restore", nil, &out, options)
	return out, err
}

// Cancel: Cancel the deployment that runs (POST /projects/{name}/cancel).
func (c *Client) Cancel(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/cancel", nil, &out, options)
	return out, err
}

// Check: Run the checks of the live release (POST /projects/{name}/check).
func (c *Client) Check(ctx context.Context, name string, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/check", nil, &out, options)
	return out, err
}

// Converge: Apply the live release again (POST /projects/{name}/converge).
func (c *Client) Converge(ctx context.Context, name string, body *ConvergeBody, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/converge", body, &out, options)
	return out, err
}

// Deploy: Redeploy the live commit (POST /projects/{name}/deploy).
func (c *Client) Deploy(ctx context.Context, name string, body *DeployBody, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/deploy", body, &out, options)
	return out, err
}

// CancelDeployment: Cancel a deployment that runs or waits (POST /projects/{name}/deployments/{id}/cancel).
func (c *Client) CancelDeployment(ctx context.Context, name string, id string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/deployments/"+url.PathEscape(id)+"/cancel", nil, &out, options)
	return out, err
}

// Revoke: Take a right from a user (DELETE /projects/{name}/grants/{user}/{right}).
func (c *Client) Revoke(ctx context.Context, name string, user string, right string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/projects/"+url.PathEscape(name)+"/grants/"+url.PathEscape(user)+"/"+url.PathEscape(right), nil, &out, options)
	return out, err
}

// Grant: Give a user a right (PUT /projects/{name}/grants/{user}/{right}).
func (c *Client) Grant(ctx context.Context, name string, user string, right string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "PUT", "/projects/"+url.PathEscape(name)+"/grants/"+url.PathEscape(user)+"/"+url.PathEscape(right), nil, &out, options)
	return out, err
}

// RemoveJob: Remove a job (DELETE /projects/{name}/jobs/{job}).
func (c *Client) RemoveJob(ctx context.Context, name string, job string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/projects/"+url.PathEscape(name)+"/jobs/"+url.PathEscape(job), nil, &out, options)
	return out, err
}

// SetJob: Store a job, as a new revision unless it is unchanged (PUT /projects/{name}/jobs/{job}).
func (c *Client) SetJob(ctx context.Context, name string, job string, body *SetBody, options ...Option) (out JobDocument, err error) {
	err = c.do(ctx, "PUT", "/projects/"+url.PathEscape(name)+"/jobs/"+url.PathEscape(job), body, &out, options)
	return out, err
}

// RunJob: Deploy the live commits in the stages of a job (POST /projects/{name}/jobs/{job}/run).
func (c *Client) RunJob(ctx context.Context, name string, job string, body *Settings, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/jobs/"+url.PathEscape(job)+"/run", body, &out, options)
	return out, err
}

// UnlinkProject: Take a project out of Salt's trees (DELETE /projects/{name}/link).
func (c *Client) UnlinkProject(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/projects/"+url.PathEscape(name)+"/link", nil, &out, options)
	return out, err
}

// LinkProject: Link a project into Salt's trees (PUT /projects/{name}/link).
func (c *Client) LinkProject(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "PUT", "/projects/"+url.PathEscape(name)+"/link", nil, &out, options)
	return out, err
}

// Plan: Show what a deployment would change, and change nothing (POST /projects/{name}/plan).
func (c *Client) Plan(ctx context.Context, name string, body *Settings, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/plan", body, &out, options)
	return out, err
}

// Promote: Bring what is live in the project live in another one, or in another environment (POST /projects/{name}/promote).
func (c *Client) Promote(ctx context.Context, name string, body *PromoteBody, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/promote", body, &out, options)
	return out, err
}

// Rollback: Roll back to an earlier deployment (POST /projects/{name}/rollback).
func (c *Client) Rollback(ctx context.Context, name string, body *RollbackBody, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/rollback", body, &out, options)
	return out, err
}

// CancelRollout: Cancel a rollout, and roll back nodes according to on_failure (POST /projects/{name}/rollout/cancel).
func (c *Client) CancelRollout(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/rollout/cancel", nil, &out, options)
	return out, err
}

// PauseRollout: Start no further node (POST /projects/{name}/rollout/pause).
func (c *Client) PauseRollout(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/rollout/pause", nil, &out, options)
	return out, err
}

// ResumeRollout: Resume a paused rollout (POST /projects/{name}/rollout/resume).
func (c *Client) ResumeRollout(ctx context.Context, name string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/rollout/resume", nil, &out, options)
	return out, err
}

// RetryRollout: Deploy the newest rollout to the nodes where it is not live (POST /projects/{name}/rollout/retry).
func (c *Client) RetryRollout(ctx context.Context, name string, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/rollout/retry", nil, &out, options)
	return out, err
}

// BeginProject: Begin a project with a skeleton (POST /projects/{name}/skeleton).
func (c *Client) BeginProject(ctx context.Context, name string, body *SkeletonBody, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/skeleton", body, &out, options)
	return out, err
}

// RunTask: Run a task (POST /projects/{name}/tasks/{task}).
func (c *Client) RunTask(ctx context.Context, name string, task string, body *Settings, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/tasks/"+url.PathEscape(task), body, &out, options)
	return out, err
}

// Undeploy: Stop a project and undo what its deployments changed outside of its tree (POST /projects/{name}/undeploy).
func (c *Client) Undeploy(ctx context.Context, name string, options ...Option) (out DeploymentDocument, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/undeploy", nil, &out, options)
	return out, err
}

// RestartUnits: Units: restart (POST /projects/{name}/units/restart).
func (c *Client) RestartUnits(ctx context.Context, name string, body *ActBody, options ...Option) (out Units, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/units/restart", body, &out, options)
	return out, err
}

// StartUnits: Units: start (POST /projects/{name}/units/start).
func (c *Client) StartUnits(ctx context.Context, name string, body *ActBody, options ...Option) (out Units, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/units/start", body, &out, options)
	return out, err
}

// StopUnits: Units: stop (POST /projects/{name}/units/stop).
func (c *Client) StopUnits(ctx context.Context, name string, body *ActBody, options ...Option) (out Units, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/units/stop", body, &out, options)
	return out, err
}

// Signal: Send a signal to a waiting deployment (POST /projects/{name}/waits/{wait}/signals).
func (c *Client) Signal(ctx context.Context, name string, wait string, body *SignalBody, options ...Option) (out SignalAnswer, err error) {
	err = c.do(ctx, "POST", "/projects/"+url.PathEscape(name)+"/waits/"+url.PathEscape(wait)+"/signals", body, &out, options)
	return out, err
}

// CreateToken: Make an API token; the secret is in this answer and nowhere else (POST /tokens).
func (c *Client) CreateToken(ctx context.Context, body *CreateTokenBody, options ...Option) (out TokenDocument, err error) {
	err = c.do(ctx, "POST", "/tokens", body, &out, options)
	return out, err
}

// RevokeToken: End an API token (DELETE /tokens/{token}).
func (c *Client) RevokeToken(ctx context.Context, token string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/tokens/"+url.PathEscape(token), nil, &out, options)
	return out, err
}

// AddUser: Add a user (POST /users).
func (c *Client) AddUser(ctx context.Context, body *AddUserBody, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/users", body, &out, options)
	return out, err
}

// RemoveUser: Remove a user with its keys, tokens and rights (DELETE /users/{user}).
func (c *Client) RemoveUser(ctx context.Context, user string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "DELETE", "/users/"+url.PathEscape(user), nil, &out, options)
	return out, err
}

// SetUser: Change a user (PATCH /users/{user}).
func (c *Client) SetUser(ctx context.Context, user string, body *SetUserBody, options ...Option) (out Text, err error) {
	err = c.do(ctx, "PATCH", "/users/"+url.PathEscape(user), body, &out, options)
	return out, err
}

// DisableUser: Keep a user from logging in (POST /users/{user}/disable).
func (c *Client) DisableUser(ctx context.Context, user string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/users/"+url.PathEscape(user)+"/disable", nil, &out, options)
	return out, err
}

// EnableUser: Enable a disabled user (POST /users/{user}/enable).
func (c *Client) EnableUser(ctx context.Context, user string, options ...Option) (out Text, err error) {
	err = c.do(ctx, "POST", "/users/"+url.PathEscape(user)+"/enable", nil, &out, options)
	return out, err
}
